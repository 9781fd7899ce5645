import { constants, lstatSync, opendirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import type { LeftOut, LeftOutReason } from '../../core/artifacts/packed.ts';
import type { ArtifactLimits } from '../../core/frames/messages.ts';
import { clip, MAX_ARTIFACT_NAME_BYTES, MAX_NAMED_LEFT_OUT } from '../../core/resources/limits.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { Rules } from '../../core/text/hidden.ts';
import { redact } from '../../core/text/redact.ts';
import { NAMES_AS_BYTES, orderedNames } from '../state/names.ts';
import { isUpload } from '../state/uploads.ts';
import { ifThere } from '../system/if-there.ts';

/** Limit of the entries that are read, with directories and those that are left out. It bounds time and memory. */
const MAX_LOOKS = 10_000;
/** Largest files that a refusal names. */
const NAMED_LARGEST = 5;

/** A file that is to be read. */
export interface Candidate {
  name: string;
  /** Path without links. */
  path: string;
  bytes: number;
  isExecutable: boolean;
}

/**
 * Finds the files below a directory, ordered by the bytes of their paths. A link counts as the file below the directory that
 * it leads to; what else is no file is left out. Stops at the limits and throws a TurnFailure that names them.
 */
export function findArtifacts(
  directory: string,
  { maxBytes, maxFiles }: ArtifactLimits,
  secrets: Rules,
): { candidates: Candidate[]; leftOut: LeftOutNames } {
  const leftOut = new LeftOutNames(secrets);
  const search = new Search(directory, maxFiles, secrets, leftOut);
  search.look();
  const { candidates } = search;
  const bytes = candidates.reduce((sum, candidate) => sum + candidate.bytes, 0);
  if (bytes > maxBytes) {
    throw tooMuch(`${bytes} bytes`, `${maxBytes} can be kept (artifacts.maxBytes)${largest(candidates)}`);
  }
  return { candidates, leftOut };
}

/** Names of what is left out, without what is to be hidden in them. */
export class LeftOutNames {
  readonly all: LeftOut = { count: 0, entries: [] };
  readonly #secrets: Rules;

  constructor(secrets: Rules) {
    this.#secrets = secrets;
  }

  add(name: string, reason: LeftOutReason): void {
    const { all } = this;
    all.count += 1;
    if (all.entries.length === MAX_NAMED_LEFT_OUT) return;
    all.entries.push({ name: clip(redact(name, this.#secrets), MAX_ARTIFACT_NAME_BYTES), reason });
  }
}

class Search {
  readonly candidates: Candidate[] = [];
  readonly #leftOut: LeftOutNames;
  readonly #root: string;
  readonly #maxFiles: number;
  readonly #secrets: Rules;
  #looks = 0;

  constructor(directory: string, maxFiles: number, secrets: Rules, leftOut: LeftOutNames) {
    const stats = ifThere(() => lstatSync(directory));
    if (stats && !stats.isDirectory()) {
      throw new TurnFailure(
        'ArtifactsNotStored',
        'BERTH_OUTPUT_DIR is no directory any more: something else was put in its place',
      );
    }
    this.#root = stats ? realpathSync(directory) : directory;
    this.#maxFiles = maxFiles;
    this.#secrets = secrets;
    this.#leftOut = leftOut;
  }

  look(directory = this.#root, prefix = ''): void {
    let names: Buffer[];
    try {
      const folder = ifThere(() => opendirSync(directory, NAMES_AS_BYTES));
      names = folder ? orderedNames(folder, () => this.#count()) : [];
    } catch (error) {
      if (error instanceof TurnFailure) throw error;
      this.#leftOut.add(prefix.slice(0, -1), 'Unreadable');
      return;
    }
    for (const bytes of names) this.#entry(directory, prefix, bytes);
  }

  #entry(directory: string, prefix: string, bytes: Buffer): void {
    const last = bytes.toString('utf8');
    // It is being written from outside: an agent may work where its output is.
    if (isUpload(last)) return;
    const name = prefix + last;
    const isText = Buffer.from(last).equals(bytes);
    if (!isText || Buffer.byteLength(name) > MAX_ARTIFACT_NAME_BYTES) {
      this.#leftOut.add(name, isText ? 'NameTooLong' : 'NotUTF8');
      return;
    }
    const path = join(directory, last);
    try {
      const stats = ifThere(() => lstatSync(path));
      if (stats?.isDirectory()) this.look(path, `${name}/`);
      else if (stats?.isFile()) this.#file(name, path, stats);
      else if (stats?.isSymbolicLink()) this.#link(name, path);
      else if (stats) this.#leftOut.add(name, 'Special');
    } catch (error) {
      if (error instanceof TurnFailure) throw error;
      this.#leftOut.add(name, 'Unreadable');
    }
  }

  #link(name: string, path: string): void {
    let real: string;
    try {
      real = realpathSync(path);
    } catch {
      // It leads to nothing, in a circle or through what may not be read.
      this.#leftOut.add(name, 'Symlink');
      return;
    }
    const stats = real.startsWith(`${this.#root}/`) ? ifThere(() => statSync(real)) : undefined;
    if (stats?.isFile()) this.#file(name, real, stats);
    else this.#leftOut.add(name, 'Symlink');
  }

  #file(name: string, path: string, { size, mode }: Stats): void {
    if (redact(name, this.#secrets) !== name) {
      this.#leftOut.add(name, 'Secret');
      return;
    }
    if (this.candidates.length === this.#maxFiles) {
      throw tooMuch(`more than ${this.#maxFiles} files`, 'no more can be kept (artifacts.maxFiles)');
    }
    this.candidates.push({ name, path, bytes: size, isExecutable: (mode & constants.S_IXUSR) !== 0 });
  }

  #count(): void {
    this.#looks += 1;
    if (this.#looks > MAX_LOOKS) {
      throw tooMuch(`more than ${MAX_LOOKS} files and folders`, `${this.#maxFiles} files can be kept`);
    }
  }
}

function largest(candidates: readonly Candidate[]): string {
  const files = candidates.toSorted((a, b) => b.bytes - a.bytes).slice(0, NAMED_LARGEST);
  return `; the largest are ${files.map(({ name, bytes }) => `${JSON.stringify(name)} (${bytes} bytes)`).join(', ')}`;
}

export function tooMuch(found: string, limit: string): TurnFailure {
  return new TurnFailure('ArtifactsTooLarge', `BERTH_OUTPUT_DIR has ${found}; ${limit}`);
}
