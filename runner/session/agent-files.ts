import { chmodSync } from 'node:fs';
import { createGunzip } from 'node:zlib';
import type { AgentFiles } from '../../core/frames/messages.ts';
import { staysInside } from '../../core/links.ts';
import { MAX_AGENT_FILES, MAX_AGENT_FILES_BYTES } from '../../core/resources/limits.ts';
import { Extraction } from '../state/extract.ts';
import { replaceDirectory } from '../state/unpack.ts';

/**
 * Fills BERTH_AGENT_DIR with the content of the archives. A later archive replaces files of an earlier one. Nothing
 * in it can be written to: files are 0444, or 0555 where anybody may execute them. Throws an Error that names the entry,
 * and leaves the directory as it was, when an archive is damaged or holds what is not allowed.
 */
export async function unpackAgentFiles(directory: string, archives: readonly Buffer[]): Promise<void> {
  await replaceDirectory(directory, async (fresh) => {
    const extraction = new Extraction(fresh, {
      what: 'agent.files',
      decompress: createGunzip,
      maxBytes: MAX_AGENT_FILES_BYTES,
      maxEntries: MAX_AGENT_FILES,
      modeOf: (type, mode) => (type === 'directory' || mode & 0o111 ? 0o555 : 0o444),
      allowsLink: staysInside,
    });
    for (const archive of archives) await extraction.add(archive);
    extraction.finish();
  });
  chmodSync(directory, 0o555);
}

/** The archives that have arrived of the version of the agent's files that is being sent. */
export class ArrivingFiles {
  #version: string | undefined;
  #archives: (Buffer | undefined)[] = [];

  /** Takes an archive; returns all of them, in their order, once none is missing. */
  take({ version, index, count }: AgentFiles, archive: Buffer): Buffer[] | undefined {
    if (version !== this.#version) {
      this.#version = version;
      this.#archives = Array.from({ length: count });
    }
    this.#archives[index] = archive;
    const arrived = this.#archives.filter((each) => each !== undefined);
    if (arrived.length < count) return undefined;
    this.#version = undefined;
    this.#archives = [];
    return arrived;
  }
}
