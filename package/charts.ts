/**
 * Packs both charts for the images that `make images` has built last: `node package/charts.ts` writes build/charts/NAME-VERSION.tgz, whose
 * appVersion is the tag of these images. Prints the paths. Needs no Helm, and the same input gives the same bytes.
 */
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { writeLayer } from '../images/layer.ts';

const checkout = join(import.meta.dirname, '..');

/** Tag of the images that were built last. */
async function builtTag(): Promise<string> {
  const text = await readFile(join(checkout, 'build/images/tag'), 'utf8').catch((error) => {
    throw new Error('there are no images that the charts could name; run `make images` first', { cause: error });
  });
  return text.trim();
}

/** Returns a Chart.yaml for these images. Its version has the commit as build metadata, by which no versions are compared: 0.1.0+g1a2b3c4d. */
function chartFor(tag: string, text: string): string {
  const [, version = ''] = /^version: (.*)$/m.exec(text) ?? [];
  if (!tag.startsWith(`${version}-`))
    throw new Error(`the images ${tag} are not of version ${version}, that of the chart; run \`make images\` again`);
  const build = tag.slice(version.length + 1).replaceAll('-', '.');
  return text
    .replace(/^version: .*$/m, `version: ${version}+${build}`)
    .replace(/^appVersion: .*$/m, `appVersion: ${tag}`);
}

/** Packs the charts for images with this tag into the folder `out`, which is emptied. Resolves to the paths, in the order in which they are installed. */
export async function packCharts(tag: string, out: string): Promise<string[]> {
  await rm(out, { recursive: true, force: true });
  const archives: string[] = [];
  for (const name of ['berth-crds', 'berth']) {
    const staged = join(out, 'staged');
    await mkdir(staged, { recursive: true });
    await cp(join(checkout, 'charts', name), join(staged, name), { recursive: true });
    const file = join(staged, name, 'Chart.yaml');
    const chart = chartFor(tag, await readFile(file, 'utf8'));
    await writeFile(file, chart);
    const archive = join(out, `${name}-${/^version: (.*)$/m.exec(chart)?.[1]}.tgz`);
    const tar = join(out, 'staged.tar');
    await writeLayer(staged, tar);
    await writeFile(archive, gzipSync(await readFile(tar)));
    for (const left of [tar, staged]) await rm(left, { recursive: true });
    archives.push(archive);
  }
  return archives;
}

if (import.meta.main) {
  try {
    for (const archive of await packCharts(await builtTag(), join(checkout, 'build/charts'))) console.log(archive);
  } catch (error) {
    console.error(`make charts: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}
