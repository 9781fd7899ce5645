import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  futimesSync,
  linkSync,
  mkdirSync,
  openSync,
  rmSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Transform } from 'node:stream';
import type { Header } from 'tar-stream';
import { sameAs, timeOf } from './header.ts';
import { CHUNK_BYTES } from './limits.ts';

/** Limits of an archive, and modes and owners of what is written. */
export interface Rules {
  /** Subject of error messages, for example `the state`. */
  what: string;
  decompress: (options: { chunkSize: number }) => Transform;
  /** Limits of the plain archive. */
  maxBytes: number;
  maxEntries: number;
  /** Mode of a file or directory from the one in the archive. */
  modeOf: (type: 'file' | 'directory', mode: number) => number;
  /** Reports whether a link with this path and target may be written. */
  allowsLink: (path: string, target: string) => boolean;
  /** Receives each chunk of the plain archive. */
  onPlain?: (chunk: Buffer) => void;
}

/**
 * Writes archives into one empty directory, whose modes are set by `finish`. A later archive replaces files of an earlier
 * one.
 */
export class Extraction {
  readonly #directory: string;
  readonly #rules: Rules;
  /** Directories made by the archives: none of them is a link that leads elsewhere. */
  readonly #made = new Set(['.']);
  /** Files written by the archives: a hard link leads to one of them. */
  readonly #files = new Set<string>();
  readonly #modes: [path: string, mode: number][] = [];
  #bytes = 0;
  #entries = 0;

  constructor(directory: string, rules: Rules) {
    this.#directory = directory;
    this.#rules = rules;
  }

  /** Throws an Error, which may leave part of the archive in the directory. */
  async add(packed: Buffer): Promise<void> {
    const tar = await import('tar-stream');
    const { what, maxBytes, maxEntries, decompress, onPlain } = this.#rules;
    const entries = tar.extract();
    const plain = decompress({ chunkSize: CHUNK_BYTES });
    plain.on('data', (chunk: Buffer) => {
      onPlain?.(chunk);
      this.#bytes += chunk.length;
      if (this.#bytes > maxBytes) plain.destroy(new Error(`${what} is larger than ${maxBytes} bytes`));
    });
    plain.on('error', (error) => entries.destroy(error));
    plain.pipe(entries);
    plain.end(packed);
    const names = new Set<string>();
    for await (const entry of entries) {
      this.#entries += 1;
      if (this.#entries > maxEntries) throw new Error(`${what} holds more than ${maxEntries} files and directories`);
      const relative = this.#checked(entry.header.name);
      if (names.has(relative)) throw new Error(`${what} holds ${JSON.stringify(relative)} twice`);
      names.add(relative);
      await this.#write(relative, entry.header, entry as AsyncIterable<Buffer>);
      entry.resume();
    }
  }

  /** Sets the modes of directories, last: one without write permission can be filled before. */
  finish(): void {
    for (const [path, mode] of this.#modes.reverse()) chmodSync(path, mode);
  }

  async #write(relative: string, header: Header, content: AsyncIterable<Buffer>): Promise<void> {
    const { what, modeOf, allowsLink } = this.#rules;
    const { name, type, mode = 0, linkname } = header;
    const path = join(this.#directory, relative);
    if (type === 'directory') {
      if (!this.#made.has(relative)) mkdirSync(path);
      this.#made.add(relative);
      this.#modes.push([path, modeOf('directory', mode)]);
      return;
    }
    if (this.#made.has(relative)) throw new Error(`${what} holds ${JSON.stringify(name)} as a file and as a directory`);
    if (type === 'symlink') {
      if (!allowsLink(relative, linkname ?? '')) {
        throw new Error(`${what} holds the link ${JSON.stringify(name)}, which leads out of it`);
      }
      rmSync(path, { force: true });
      symlinkSync(linkname ?? '', path);
    } else if (type === 'file') {
      rmSync(path, { force: true });
      const same = sameAs(header);
      if (same !== undefined && this.#link(same, path)) return;
      await writeFile(path, header, modeOf('file', mode), content);
      this.#files.add(relative);
    } else {
      throw new Error(`${what} holds ${JSON.stringify(name)} of type ${type}`);
    }
  }

  /** Makes a hard link to an earlier file; false where that is none, or the file system takes no link: the content is there too. */
  #link(same: string, path: string): boolean {
    if (!this.#files.has(same)) return false;
    try {
      linkSync(join(this.#directory, same), path);
      return true;
    } catch {
      return false;
    }
  }

  /** Checks that the parent is a directory made by an archive: no `..`, no absolute path and no way through a link. */
  #checked(name: string): string {
    const relative = name.replace(/\/$/, '');
    const parts = relative.split('/');
    if (parts.some((part) => part === '' || part === '.' || part === '..') || !this.#made.has(dirname(relative))) {
      throw new Error(`${this.#rules.what} holds ${JSON.stringify(name)}, which is no path in it`);
    }
    return relative;
  }
}

async function writeFile(path: string, header: Header, mode: number, content: AsyncIterable<Buffer>): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const fd = openSync(path, flags, 0o600);
  try {
    for await (const chunk of content) {
      for (let at = 0; at < chunk.length; ) at += writeSync(fd, chunk, at);
    }
    fchmodSync(fd, mode);
    const time = timeOf(header);
    if (time !== undefined) futimesSync(fd, time, time);
  } finally {
    closeSync(fd);
  }
}
