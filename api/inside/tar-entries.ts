import { isUtf8 } from 'node:buffer';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { extract, type Header } from 'tar-stream';
import { EnterError } from '../../core/enter/client.ts';
import type { FolderEntry } from '../../core/enter/uploads.ts';
import { staysInside } from '../../core/links.ts';
import { Problem } from '../problems/problems.ts';

/**
 * Yields what a tar has, as a folder takes it. Throws a Problem for bytes that are no tar and for entries that are neither file, folder nor
 * link, an EnterError for what leads out of the folder, and whatever `bytes` throws.
 */
export async function* tarEntries(bytes: AsyncIterable<Buffer>): AsyncGenerator<FolderEntry> {
  // Names are bytes; those of pax records are UTF-8.
  const tar = extract({ filenameEncoding: 'latin1' } as object);
  /** The first error; those that follow from it say less. */
  let failure: { error: unknown } | undefined;
  const first = (error: unknown): unknown => {
    failure ??= { error };
    return failure.error;
  };
  const source = async function* () {
    try {
      yield* bytes;
    } catch (error) {
      throw first(error);
    }
  };
  const contentOf = async function* (entry: AsyncIterable<Buffer>) {
    try {
      yield* entry;
    } catch (cause) {
      throw first(noTar(cause));
    }
  };
  const described = (header: Header, content: AsyncIterable<Buffer>) => {
    try {
      return entryOf(header, content);
    } catch (error) {
      throw first(error);
    }
  };
  const reading = pipeline(Readable.from(source()), tar).catch((cause) => first(noTar(cause)));
  try {
    for await (const entry of tar) {
      const found = described(entry.header, contentOf(entry as AsyncIterable<Buffer>));
      if (found) yield found;
      entry.resume();
    }
  } catch (cause) {
    throw first(noTar(cause));
  } finally {
    tar.destroy();
    await reading;
  }
  if (failure) throw failure.error;
}

const noTar = (cause: unknown) => new Problem('Invalid', `The body is no whole tar: ${(cause as Error).message}.`);

/** Returns an entry; undefined for that of the folder itself, which `tar -c .` begins with. */
function entryOf(header: Header, content: AsyncIterable<Buffer>): FolderEntry | undefined {
  const pax = (header.pax ?? {}) as Record<string, string>;
  const path = textOf(header.name, pax.path !== undefined)
    .replace(/^(\.\/+)+/, '')
    .replace(/\/+$/, '');
  if (path === '' || path === '.') return undefined;
  if (path.split('/').some((name) => name === '' || name === '.' || name === '..' || name.includes('\0'))) {
    throw outside(`the tar names ${JSON.stringify(path)}, which is no path in a folder`);
  }
  const modified = pax.mtime === undefined ? (header.mtime?.getTime() ?? 0) : Number(pax.mtime) * 1000;
  const facts = { path, mode: (header.mode ?? 0o644) & 0o777, modified: Math.max(0, modified || 0) };
  switch (header.type) {
    case 'file':
    case 'contiguous-file':
      return { ...facts, type: 'file', length: header.size ?? 0, content };
    case 'directory':
      return { ...facts, type: 'folder' };
    case 'symlink': {
      const target = textOf(header.linkname ?? '', pax.linkpath !== undefined);
      if (staysInside(path, target)) return { ...facts, type: 'link', target };
      throw outside(`the link ${JSON.stringify(path)} of the tar leads out of its folder`);
    }
    default:
      throw invalid(`${JSON.stringify(path)} is of the type ${header.type}. Send files, folders and symbolic links.`);
  }
}

function textOf(name: string, isPax: boolean): string {
  if (isPax) return name;
  const bytes = Buffer.from(name, 'latin1');
  if (isUtf8(bytes)) return bytes.toString('utf8');
  throw invalid(`a name in the tar is not UTF-8: ${JSON.stringify(bytes.toString('utf8'))}.`);
}

const invalid = (text: string) => new Problem('Invalid', text);
const outside = (message: string) => new EnterError({ code: 'OutsideRoot', message, field: 'path' });
