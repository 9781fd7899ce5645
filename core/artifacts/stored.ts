import type { KubeApi } from '../kube/types.ts';
import { parseStoreKey } from '../resources/names.ts';
import type { Artifact } from '../resources/turn.ts';
import { readStored } from '../store/read.ts';
import { StoreCorruptError } from '../store/store.ts';
import { digestOf } from './packed.ts';

/**
 * Reads artifacts with the rights of `api`, which needs `get` on blobs: yields each with its content, checked against its
 * digest. Rejects with StoreMissingError, StoreCorruptError or an ApiError.
 */
export async function* readArtifacts(
  api: Pick<KubeApi, 'get'>,
  namespace: string,
  artifacts: readonly Artifact[],
  signal?: AbortSignal,
): AsyncGenerator<{ artifact: Artifact; content: Buffer }> {
  // The artifacts of a turn are parts of one content, which is read once.
  let last: { ref: string; content: Buffer } | undefined;
  for (const artifact of artifacts) {
    const { name, ref, offset, bytes, digest } = artifact;
    const what = `Artifact ${JSON.stringify(name)}`;
    const key = parseStoreKey(ref);
    if (!key) throw new StoreCorruptError(what, `its reference ${JSON.stringify(ref)} is no key`);
    if (last?.ref !== ref) {
      last = { ref, content: await readStored(api, { ...key, namespace, kind: 'Artifacts' }, signal) };
    }
    const content = last.content.subarray(offset, offset + bytes);
    if (digestOf(content) !== digest) throw new StoreCorruptError(what, 'its digest is not that of what was stored');
    yield { artifact, content };
  }
}
