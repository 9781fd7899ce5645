import type { KubeApi } from '../kube/types.ts';
import { parseStoreKey } from '../resources/names.ts';
import type { Artifact } from '../resources/turn.ts';
import { readStored } from '../store/read.ts';
import { StoreCorruptError } from '../store/store.ts';
import { digestOf } from './packed.ts';

/** Reads artifacts with the rights of `api`, which needs `get` on blobs. */
export class ArtifactReader {
  readonly #api: Pick<KubeApi, 'get'>;
  readonly #namespace: string;
  readonly #most: number;
  /** The artifacts of a turn are parts of one content, which is read once. */
  #last: { ref: string; content: Buffer } | undefined;

  /** `most`: bytes that all artifacts of a turn may have, where the reader's memory is bounded. */
  constructor(api: Pick<KubeApi, 'get'>, namespace: string, most = Number.POSITIVE_INFINITY) {
    this.#api = api;
    this.#namespace = namespace;
    this.#most = most;
  }

  /**
   * Returns the content of an artifact, checked against its digest. Rejects with StoreMissingError, StoreCorruptError or an
   * ApiError.
   */
  async read({ name, ref, offset, bytes, digest }: Artifact, signal?: AbortSignal): Promise<Buffer> {
    const what = `Artifact ${JSON.stringify(name)}`;
    if (this.#last?.ref !== ref) {
      const key = parseStoreKey(ref);
      if (!key) throw new StoreCorruptError(what, `its reference ${JSON.stringify(ref)} is no key`);
      const content = { ...key, namespace: this.#namespace, kind: 'Artifacts' } as const;
      const stored = await readStored(this.#api, content, signal, 0, this.#most);
      this.#last = { ref, content: stored };
    }
    const content = this.#last.content.subarray(offset, offset + bytes);
    if (digestOf(content) !== digest) throw new StoreCorruptError(what, 'its digest is not that of what was stored');
    return content;
  }
}
