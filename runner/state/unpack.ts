import { createHash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { createZstdDecompress } from 'node:zlib';
import type { Header } from 'tar-stream';
import { MAX_PLAIN_BYTES } from './limits.ts';

/**
 * Replaces the directory by the content of the archive in one step, once all of it is written and its digest is
 * correct. Otherwise throws an Error and leaves the directory as it was.
 */
export async function unpackDirectory(directory: string, packed: Buffer, digest: string): Promise<void> {
  const fresh = `${directory}.restoring`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  try {
    const found = await unpackInto(fresh, packed);
    if (found !== digest) throw new Error(`the state's digest is ${found}, not ${digest}`);
    rmSync(directory, { recursive: true, force: true });
    renameSync(fresh, directory);
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    throw error;
  }
}

async function unpackInto(directory: string, packed: Buffer): Promise<string> {
  const tar = await import('tar-stream');
  const extract = tar.extract();
  const hash = createHash('sha256');
  let bytes = 0;
  const plain = createZstdDecompress();
  plain.on('data', (chunk: Buffer) => {
    hash.update(chunk);
    bytes += chunk.length;
    if (bytes > MAX_PLAIN_BYTES) plain.destroy(new Error(`the state is larger than ${MAX_PLAIN_BYTES} bytes`));
  });
  plain.on('error', (error) => extract.destroy(error));
  plain.pipe(extract);
  plain.end(packed);
  /** Directories made by this archive: none of them is a link that leads elsewhere. */
  const made = new Set(['.']);
  const modes: [path: string, mode: number][] = [];
  for await (const entry of extract) {
    const { name, type, mode, linkname } = entry.header;
    const relative = checkedName(name, made);
    const path = join(directory, relative);
    if (type === 'directory') {
      mkdirSync(path);
      made.add(relative);
      modes.push([path, mode]);
      entry.resume();
    } else if (type === 'symlink') {
      symlinkSync(linkname, path);
      entry.resume();
    } else if (type === 'file') {
      await writeFile(path, entry.header, entry as AsyncIterable<Buffer>);
    } else {
      throw new Error(`the state holds ${JSON.stringify(name)} of type ${type}`);
    }
  }
  // Modes are set last, so that a directory without write permission can be filled.
  for (const [path, mode] of modes.reverse()) chmodSync(path, mode & 0o777);
  return hash.digest('hex');
}

/** Checks that the parent is a directory made by this archive: no `..`, no absolute path and no way through a link. */
function checkedName(name: string, made: Set<string>): string {
  const relative = name.replace(/\/$/, '');
  const parts = relative.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..') || !made.has(dirname(relative))) {
    throw new Error(`the state holds ${JSON.stringify(name)}, which is no place in it`);
  }
  return relative;
}

async function writeFile(path: string, { mode, mtime }: Header, content: AsyncIterable<Buffer>): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const fd = openSync(path, flags, 0o600);
  try {
    for await (const chunk of content) {
      for (let at = 0; at < chunk.length; ) at += writeSync(fd, chunk, at);
    }
  } finally {
    closeSync(fd);
  }
  chmodSync(path, mode & 0o777);
  utimesSync(path, mtime, mtime);
}
