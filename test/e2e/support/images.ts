/** The images of the tests: those of the product, and some that know nothing of Berth. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ArchiveResult, writeArchive } from '../../../images/archive.ts';
import { buildImages, image, images } from '../../../images/build.ts';
import { buildAnyImages } from './any-images.ts';

const checkout = join(import.meta.dirname, '..', '..', '..');
const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'));

/** Image names as the chart forms them, from its appVersion. */
export const runnerImage = image('runner', version).name;
export const pythonImage = image('runner-python', version).name;
/** Command of the Python agent for an image with Python. */
export const pythonAgent = ['python3', '-c', readFileSync(join(checkout, 'test/e2e/agents/agent.py'), 'utf8')];

/** The runner image as somebody may make it who copies files: its Node can be read by everybody. */
export const readableImage = 'example/readable:e2e';

function buildReadableImage(): Promise<ArchiveResult> {
  const { layers, config } = image('runner', version);
  const readable = layers.map(({ folder }) => ({ folder }));
  return writeArchive({ name: readableImage, layers: readable, config }, join(checkout, 'build/images/readable.tar'));
}

/** Builds all images that the tests need; resolves to the archives. */
export async function buildTestImages(): Promise<ArchiveResult[]> {
  return [...(await buildImages(images)), ...(await buildAnyImages()), await buildReadableImage()];
}
