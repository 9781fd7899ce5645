/**
 * Packs one root folder as an image: `node images/pack.ts FOLDER NAME OUT.tar ENTRYPOINT [ARG…]`.
 * Used by test/cluster for the images that Kubernetes itself runs.
 */
import { writeArchive } from './archive.ts';

const [folder, name, out, ...entrypoint] = process.argv.slice(2);
if (folder === undefined || name === undefined || out === undefined || entrypoint.length === 0) {
  console.error('usage: node images/pack.ts FOLDER NAME OUT.tar ENTRYPOINT [ARG…]');
  process.exit(2);
}
const config = { Entrypoint: entrypoint, Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'] };
const result = await writeArchive({ name, layers: [{ folder }], config }, out);
console.log(`${result.name} ${result.id} ${result.bytes} bytes`);
