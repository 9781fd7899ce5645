/** Digest of everything that the images of the tests are made of. */
import { createHash, type Hash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

const checkout = join(import.meta.dirname, '..', '..', '..');

/** Files and folders of the checkout. No program imports another, so that the CLI and local Berth are in no image. */
const SOURCES = [
  ...['api', 'controller', 'core', 'images', 'runner', 'test/e2e/support'],
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'LICENSE'],
  ...['build/keeper', 'build/signals.node', 'build/bin/berth-agent', 'build/bin/berth-enter'],
];
/** Places of the machine that tell of its programs and libraries, and of the packages that apt would download: names, sizes and times. */
const MACHINE = [
  '/var/lib/dpkg/status',
  '/var/lib/apt/lists',
  '/bin/busybox',
  join(checkout, 'node_modules/node/bin/node'),
];

export async function digestOfSources(): Promise<string> {
  const hash = createHash('sha256');
  for (const path of SOURCES) await addContent(hash, path);
  for (const path of MACHINE) await addFacts(hash, path);
  return hash.digest('hex');
}

async function addContent(hash: Hash, path: string): Promise<void> {
  const place = join(checkout, path);
  for (const file of await filesBelow(place)) {
    const content = await readFile(file);
    hash.update(`${file.slice(checkout.length)} ${content.length}\n`).update(content);
  }
}

async function addFacts(hash: Hash, place: string): Promise<void> {
  for (const file of await filesBelow(place)) {
    const { size, mtimeMs } = await stat(file);
    hash.update(`${file} ${size} ${mtimeMs}\n`);
  }
}

/** The file itself, or the files below a folder, sorted; none where there is nothing, as on a machine without apt. */
async function filesBelow(place: string): Promise<string[]> {
  const found = await stat(place).catch(() => undefined);
  if (!found?.isDirectory()) return found ? [place] : [];
  const entries = await readdir(place, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
