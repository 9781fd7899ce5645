/** Builds the images, brings them onto the kind cluster CLUSTER, which is that of KUBECONFIG, and installs the chart with them. */

import { buildTestImages } from './support/images.ts';
import { loadImage } from './support/node.ts';
import { install } from './support/release.ts';

const started = performance.now();
const say = (text: string) => console.log(`e2e: ${text} (${((performance.now() - started) / 1000).toFixed(1)} s)`);

const images = await buildTestImages();
say('images built');
for (const image of images) await loadImage(image);
say('images loaded');
await install();
say('chart installed');
