import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  opendirSync,
  openSync,
  readlinkSync,
  readSync,
  renameSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { digestOf, type PackedFile } from '../../core/artifacts/packed.ts';
import type { ArtifactLimits } from '../../core/frames/messages.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { Rules } from '../../core/text/hidden.ts';
import { redactBytes } from '../../core/text/redact-bytes.ts';
import { errorCode } from '../system/errors.ts';
import { ifThere } from '../system/if-there.ts';
import type { CollectedArtifacts, OutputDirectory } from './artifacts.ts';
import { type Candidate, findArtifacts, tooMuch } from './find.ts';

/** BERTH_OUTPUT_DIR on a file system. `secrets` are hidden in contents and names. */
export function outputDirectory(directory: string, limits: ArtifactLimits, secrets: Rules): OutputDirectory {
  return {
    empty: () => empty(directory),
    collect: () => collect(directory, limits, secrets),
  };
}

/**
 * Puts an empty directory in the place of one that is not. The old one is moved away at once and removed later: a turn
 * does not wait for the removal of a million files.
 */
function empty(directory: string): void {
  try {
    if (isEmpty(directory)) return;
    const old = `${directory}.old-${randomBytes(6).toString('hex')}`;
    if (ifThere(() => lstatSync(directory))) renameSync(directory, old);
    mkdirSync(directory, { recursive: true });
    // A process of an earlier turn may still write to it, and its folders may forbid the removal.
    rm(old, { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
  } catch (error) {
    throw new TurnFailure(
      'ArtifactsNotStored',
      `BERTH_OUTPUT_DIR cannot be emptied for the turn (${errorCode(error)})`,
    );
  }
}

function isEmpty(directory: string): boolean {
  if (!ifThere(() => lstatSync(directory))?.isDirectory()) return false;
  let folder: ReturnType<typeof opendirSync>;
  try {
    folder = opendirSync(directory);
  } catch {
    return false;
  }
  try {
    return folder.readSync() === null;
  } finally {
    folder.closeSync();
  }
}

async function collect(directory: string, limits: ArtifactLimits, secrets: Rules): Promise<CollectedArtifacts> {
  const { candidates, leftOut } = findArtifacts(directory, limits, secrets);
  const collected: CollectedArtifacts = { files: [], contents: [], leftOut: leftOut.all, redactions: 0 };
  let bytes = 0;
  for (const candidate of candidates) {
    const raw = read(candidate);
    if (raw === 'Gone') continue;
    if (raw === 'Unreadable') {
      leftOut.add(candidate.name, raw);
      continue;
    }
    const content = await redactBytes(raw, secrets, () => {
      collected.redactions += 1;
    });
    bytes += content.length;
    // A replacement can be longer than what it hides.
    if (bytes > limits.maxBytes)
      throw tooMuch(`more than ${limits.maxBytes} bytes`, 'no more can be kept (artifacts.maxBytes)');
    collected.contents.push(content);
    collected.files.push(described(candidate, content));
  }
  return collected;
}

function described({ name, isExecutable }: Candidate, content: Buffer): PackedFile {
  return {
    name,
    bytes: content.length,
    digest: digestOf(content),
    ...(isExecutable && { executable: true as const }),
  };
}

/**
 * Reads a file up to the size that was counted: processes that the turn left running may still write to it. Gone: it has
 * vanished or was replaced since.
 */
function read({ path, bytes }: Candidate): Buffer | 'Gone' | 'Unreadable' {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    return ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'].includes(errorCode(error)) ? 'Gone' : 'Unreadable';
  }
  try {
    // A folder on the way can have been replaced by a link.
    if (!fstatSync(fd).isFile() || (pathOf(fd) ?? path) !== path) return 'Gone';
    const content = Buffer.alloc(bytes);
    let filled = 0;
    for (let count = -1; count !== 0 && filled < bytes; filled += count) {
      count = readSync(fd, content, filled, bytes - filled, filled);
    }
    return content.subarray(0, filled);
  } catch {
    return 'Unreadable';
  } finally {
    closeSync(fd);
  }
}

/** Path of an open file by the kernel's knowledge; undefined where the kernel does not say, or the file was removed. */
function pathOf(fd: number): string | undefined {
  const path = ifThere(() => readlinkSync(`/proc/self/fd/${fd}`));
  return path?.endsWith(' (deleted)') ? undefined : path;
}
