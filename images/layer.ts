/**
 * Layer of a container image: a folder as a tar whose bytes depend on the folder's content alone. Entries are sorted,
 * belong to root unless told otherwise, and are dated 1970, so that two checkouts give the same digest.
 */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, type Stats } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Header, type Pack, pack } from 'tar-stream';

/** Exceptions from root and the usual 0755 and 0644, by path (absolute inside the image). */
export type Modes = Readonly<Record<string, { mode: number; gid?: number }>>;

/** Written layer; `digest` is `sha256:<hex>` of the tar, `size` its length in bytes. */
export interface Layer {
  digest: string;
  size: number;
}

/**
 * Writes `folder` as a layer to `file`. Rejects when the folder holds anything but files, folders and symbolic links.
 */
export async function writeLayer(folder: string, file: string, modes: Modes = {}): Promise<Layer> {
  const hash = createHash('sha256');
  let size = 0;
  const measure = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      size += chunk.length;
      done(null, chunk);
    },
  });
  const tar = pack();
  const written = pipeline(tar, measure, createWriteStream(file));
  await Promise.all([addChildren(tar, folder, '', modes).then(() => tar.finalize()), written]);
  return { digest: `sha256:${hash.digest('hex')}`, size };
}

async function addChildren(tar: Pack, root: string, path: string, modes: Modes): Promise<void> {
  for (const name of (await readdir(join(root, path))).sort(byCodeUnits)) {
    const child = path === '' ? name : `${path}/${name}`;
    const source = join(root, child);
    const stats = await lstat(source);
    const { mode = usualMode(stats), gid = 0 } = modes[`/${child}`] ?? {};
    const entry = { name: child, uid: 0, gid, mtime: new Date(0), mode };
    if (stats.isDirectory()) {
      await addEntry(tar, { ...entry, type: 'directory' });
      await addChildren(tar, root, child, modes);
    } else if (stats.isSymbolicLink()) {
      await addEntry(tar, { ...entry, type: 'symlink', linkname: await readlink(source) });
    } else if (stats.isFile()) {
      await addFile(tar, { ...entry, type: 'file', size: stats.size }, source);
    } else {
      throw new Error(`${source} is neither a file, a folder nor a symbolic link; an image layer cannot hold it`);
    }
  }
}

/**
 * Returns the usual mode: the checkout's umask must not reach the image, so only "executable or not" is taken from the
 * disk.
 */
function usualMode(stats: Stats): number {
  if (stats.isSymbolicLink()) return 0o777;
  return stats.isDirectory() || (stats.mode & 0o111) !== 0 ? 0o755 : 0o644;
}

function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function addEntry(tar: Pack, header: Partial<Header> & { name: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    tar.entry(header, '', (error) => (error ? reject(error) : resolve()));
  });
}

async function addFile(tar: Pack, header: Partial<Header> & { name: string }, source: string): Promise<void> {
  const finished = Promise.withResolvers<void>();
  const entry = tar.entry(header, (error) => (error ? finished.reject(error) : finished.resolve()));
  await Promise.all([pipeline(createReadStream(source), entry), finished.promise]);
}
