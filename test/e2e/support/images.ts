/** The images of the tests: those of the product, and some that know nothing of Berth. */
import { readFileSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ArchiveResult, writeArchive } from '../../../images/archive.ts';
import { buildImages, image, images } from '../../../images/build.ts';
import { buildAnyImages } from './any-images.ts';
import { digestOfSources } from './current.ts';

const checkout = join(import.meta.dirname, '..', '..', '..');
/** The images of the tests have one name, whatever they are made of: a cluster that stays does not fill with their versions. */
const BUILD = { version: '0.0.0', tag: 'e2e', revision: 'e2e' };

export const runnerImage = image('runner', BUILD).name;
export const pythonImage = image('runner-python', BUILD).name;
/** Command of the Python agent for an image with Python. */
export const pythonAgent = ['python3', '-c', readFileSync(join(checkout, 'test/e2e/agents/agent.py'), 'utf8')];

/** The runner image as somebody may make it who copies files: its Node can be read by everybody. */
export const readableImage = 'example/readable:e2e';

function buildReadableImage(): Promise<ArchiveResult> {
  const { layers, config } = image('runner', BUILD);
  const readable = layers.map(({ folder }) => ({ folder }));
  return writeArchive({ name: readableImage, layers: readable, config }, join(checkout, 'build/images/readable.tar'));
}

/** In the folder that `buildImages` empties before it writes. */
const note = join(checkout, 'build/images/e2e.json');

/** What was built last, with the digest of what it was made of. */
interface Note {
  sources: string;
  archives: ArchiveResult[];
}

/** Resolves to the archives of all images that the tests need; builds them where they were not made of what is there now. */
export async function testImages(): Promise<{ archives: ArchiveResult[]; isNew: boolean }> {
  const sources = await digestOfSources();
  const last = await readFile(note, 'utf8').then(
    (text): Note => JSON.parse(text),
    () => undefined,
  );
  if (last?.sources === sources && (await areThere(last.archives))) return { archives: last.archives, isNew: false };
  const archives = [...(await buildImages(images, BUILD)), ...(await buildAnyImages()), await buildReadableImage()];
  // A build takes a while: a source that was changed meanwhile may be in some images and not in others.
  if ((await digestOfSources()) === sources)
    await writeFile(note, JSON.stringify({ sources, archives } satisfies Note));
  return { archives, isNew: true };
}

async function areThere(archives: readonly ArchiveResult[]): Promise<boolean> {
  const found = await Promise.all(archives.map(({ file }) => stat(file).catch(() => undefined)));
  return found.every((file, index) => file !== undefined && file.size > archives[index]!.bytes);
}
