/** Builds the images, brings them onto the cluster of KUBECONFIG and installs the chart with them: `node test/e2e/prepare.ts CLUSTER`. */

import { finish, release } from './support/cluster.ts';
import { buildTestImages } from './support/images.ts';
import { install } from './support/release.ts';

const cluster = process.argv[2] ?? release;
const started = performance.now();
const say = (text: string) => console.log(`e2e: ${text} (${((performance.now() - started) / 1000).toFixed(1)} s)`);

const images = await buildTestImages();
say('images built');
for (const { file, name } of images) {
  const { code, stderr } = await finish('kind', ['load', 'image-archive', file, '--name', cluster]);
  if (code !== 0) throw new Error(`kind cannot load ${name} from ${file}: ${stderr}`);
}
say('images loaded');
await install();
say('chart installed');
