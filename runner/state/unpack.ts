import { createHash } from 'node:crypto';
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createZstdDecompress } from 'node:zlib';
import { Extraction } from './extract.ts';
import { MAX_ENTRIES, MAX_RESTORED_BYTES } from './limits.ts';

/**
 * Replaces the directory by the content of the archive in one step, once all of it is written and its digest is
 * correct. Otherwise throws an Error and leaves the directory as it was.
 */
export async function unpackDirectory(directory: string, packed: Buffer, digest: string): Promise<void> {
  const hash = createHash('sha256');
  await replaceDirectory(directory, async (fresh) => {
    const extraction = new Extraction(fresh, {
      what: 'the state',
      decompress: createZstdDecompress,
      maxBytes: MAX_RESTORED_BYTES,
      maxEntries: MAX_ENTRIES,
      modeOf: (_type, mode) => mode & 0o777,
      // The agent wrote the link itself, and whoever unpacks follows none.
      allowsLink: () => true,
      onPlain: (chunk) => hash.update(chunk),
    });
    await extraction.add(packed);
    extraction.finish();
    const found = hash.digest('hex');
    if (found !== digest) throw new Error(`the state's digest is ${found}, not ${digest}`);
  });
}

/** Replaces the directory by one that `fill` fills; when it throws, the directory stays as it was. */
export async function replaceDirectory(directory: string, fill: (fresh: string) => Promise<void>): Promise<void> {
  const fresh = besides(directory);
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  try {
    await fill(fresh);
    rmSync(directory, { recursive: true, force: true });
    renameSync(fresh, directory);
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Returns a path beside the directory that is no longer: restored files can have paths that are as long as the kernel allows
 * in the directory itself.
 */
function besides(directory: string): string {
  const name = basename(directory);
  const other = name.endsWith('~') ? '-' : '~';
  return join(dirname(directory), `${name.slice(0, -1)}${other}`);
}
