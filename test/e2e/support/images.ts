/** The image of the Python agent: the runner's image and, above it, Debian's python3 and the agent. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type ArchiveResult, writeArchive } from '../../../images/archive.ts';
import { buildImages, image, programs } from '../../../images/build.ts';
import { makeRoot } from '../../../images/libraries.ts';
import { buildAnyImages } from './any-images.ts';

const run = promisify(execFile);
const checkout = join(import.meta.dirname, '..', '..', '..');

/** As the chart names it, by its appVersion. */
export const runnerImage = image(
  'runner',
  JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')).version,
).name;
export const pythonImage = 'berth/python-agent:e2e';
export const pythonAgent = ['python3', '/opt/agents/agent.py'];

/** Builds all images that the tests need; resolves to the archives. */
export async function buildTestImages(): Promise<ArchiveResult[]> {
  const product = await buildImages(programs);
  const root = join(checkout, 'build/images/python');
  await makeRoot(root);
  await run(join(import.meta.dirname, 'python-root.sh'), [root]);
  await mkdir(join(root, 'opt'), { recursive: true });
  await cp(join(checkout, 'test/e2e/agents'), join(root, 'opt/agents'), { recursive: true });
  const runner = image('runner', 'e2e');
  const agent = { name: pythonImage, layers: [...runner.layers, { folder: root }], config: runner.config };
  return [
    ...product,
    await writeArchive(agent, join(checkout, 'build/images/python-agent.tar')),
    ...(await buildAnyImages()),
  ];
}
