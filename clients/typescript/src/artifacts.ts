import { createHash, randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { backoffMs, wait } from './clock.ts';
import { ConnectionLost, ContentDamaged } from './errors.ts';
import type { Answer } from './http.ts';
import type { Caller, Limits } from './retry.ts';

interface ArtifactFacts {
  name: string;
  bytes?: number | undefined;
  /** sha256 of the content, hex. */
  digest?: string | undefined;
  executable?: boolean | undefined;
}

/** A file that a turn has left. */
export class Artifact {
  /** The file's path below BERTH_OUTPUT_DIR. */
  readonly name: string;
  /** Size; undefined, as the next two, where only the name is known. */
  readonly bytes: number | undefined;
  /** sha256 of the content, hex. */
  readonly digest: string | undefined;
  readonly executable: boolean | undefined;
  readonly #caller: Caller;
  readonly #path: string;

  /** `turn`: path of the turn. */
  constructor(caller: Caller, turn: string, { name, bytes, digest, executable }: ArtifactFacts) {
    this.name = name;
    this.bytes = bytes;
    this.digest = digest;
    this.executable = executable;
    this.#caller = caller;
    this.#path = `${turn}/artifacts/${encodeURIComponent(name)}`;
  }

  /**
   * Yields the content. A transfer that is cut goes on where it was. The digest is checked when the last byte has come: throws a ContentDamaged where it
   * is another, so use nothing before the loop has ended. `deadlineMs` is the longest time without a byte.
   */
  async *stream({
    signal,
    deadlineMs = this.#caller.deadlineMs,
  }: Limits = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const { clock, timing } = this.#caller;
    const hash = createHash('sha256');
    const known: Known = { bytes: this.bytes, digest: this.digest, etag: undefined };
    let at = 0;
    for (let failures = 0, lastMs = clock.monotonic(); ; ) {
      const leftMs = Math.max(1, lastMs + deadlineMs - clock.monotonic());
      const answer = await this.#open(at, known, { signal, deadlineMs: leftMs });
      try {
        for await (const chunk of answer.chunks()) {
          hash.update(chunk);
          at += chunk.length;
          failures = 0;
          yield chunk;
          lastMs = clock.monotonic();
        }
        if (known.bytes === undefined || at >= known.bytes) break;
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error;
        if (at === known.bytes) break;
        if (clock.monotonic() - lastMs >= deadlineMs) throw error;
      }
      failures++;
      await wait(clock, backoffMs(timing, failures), signal);
    }
    const digest = hash.digest('hex');
    if (known.bytes !== undefined && at !== known.bytes)
      throw this.#damaged(`has ${known.bytes} bytes, and ${at} came`);
    if (known.digest !== undefined && digest !== known.digest) {
      throw this.#damaged(`has the sha256 ${known.digest}, and what came has ${digest}`);
    }
  }

  /** Reads the whole content into memory. A content that is damaged is read once more; throws a ContentDamaged where that is damaged, too. */
  read(limits: Limits = {}): Promise<Uint8Array> {
    return againIfDamaged(async () => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of this.stream(limits)) chunks.push(chunk);
      return Buffer.concat(chunks);
    });
  }

  /**
   * Writes the content to a file, which gets its name when the whole content has come and its digest is right; until then `path` is as it was. A
   * content that is damaged is read once more.
   */
  async save(path: string, limits: Limits = {}): Promise<void> {
    const partial = `${path}.${randomUUID()}.part`;
    const mode = this.executable ? 0o777 : 0o666;
    try {
      await againIfDamaged(async () => {
        const file = await open(partial, 'w', mode);
        try {
          for await (const chunk of this.stream(limits)) await file.writeFile(chunk);
        } finally {
          await file.close();
        }
      });
      await rename(partial, path);
    } catch (error) {
      await rm(partial, { force: true });
      throw error;
    }
  }

  /** Opens the content from a position on, and learns what the first answer says of it. */
  async #open(at: number, known: Known, limits: Limits): Promise<Answer> {
    const range = at === 0 ? {} : { range: `bytes=${at}-`, ...(known.etag ? { 'if-range': known.etag } : {}) };
    // A compressed content would have other positions.
    const headers = { accept: '*/*', 'accept-encoding': 'identity', ...range };
    const answer = await this.#caller.open({ ...limits, method: 'GET', path: this.#path, headers });
    const [, first, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(answer.headers.get('content-range') ?? '') ?? [];
    if (at > 0 && (answer.status !== 206 || Number(first) !== at)) {
      await answer.discard();
      throw this.#damaged('was replaced while it was read');
    }
    known.etag ??= answer.headers.get('etag') ?? undefined;
    known.digest ??= digestIn(answer.headers);
    const bytes = total ?? answer.headers.get('content-length');
    if (bytes) known.bytes ??= Number(bytes);
    return answer;
  }

  #damaged(how: string): ContentDamaged {
    return new ContentDamaged(`artifact ${JSON.stringify(this.name)} ${how}; read it again`);
  }
}

/** Reads once more where what came is damaged: it may have been damaged on its way. */
async function againIfDamaged<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ContentDamaged)) throw error;
    return read();
  }
}

/** The facts of a content that are known so far. */
interface Known {
  bytes: number | undefined;
  digest: string | undefined;
  etag: string | undefined;
}

function digestIn(headers: Answer['headers']): string | undefined {
  const [, base64] = /\bsha-256=:([\w+/=]+):/.exec(headers.get('repr-digest') ?? '') ?? [];
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64').toString('hex');
}
