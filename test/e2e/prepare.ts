/**
 * Brings the images of the tests onto the kind cluster CLUSTER, which is that of KUBECONFIG, and installs the chart with them. Builds
 * and loads only what is not there: an image's id is the digest of its content. The release is installed always, because a test that
 * was ended may have left it with other values.
 */

import { testImages } from './support/images.ts';
import { imagesOn, loadImage, nodeNames } from './support/node.ts';
import { install } from './support/release.ts';

const started = performance.now();
const say = (text: string) => console.log(`e2e: ${text} (${((performance.now() - started) / 1000).toFixed(1)} s)`);

const { archives, isNew } = await testImages();
say(isNew ? 'images built' : 'images are there already');
const nodes = await nodeNames();
const has = await Promise.all(nodes.map(imagesOn));
let loads = 0;
for (const archive of archives) {
  const missing = nodes.filter((_, index) => !has[index]!(archive));
  if (missing.length === 0) continue;
  await loadImage(archive, ...missing);
  loads += 1;
}
say(`${loads} of ${archives.length} images loaded`);
await install();
say('chart installed');
