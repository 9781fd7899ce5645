import { eachPage } from '../../core/kube/pages.ts';
import { blobs } from '../../core/resources/kinds.ts';
import { ANNOTATION_BLOB_BYTES } from '../../core/resources/names.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { secretMetadata } from '../cluster/secret-metadata.ts';
import { error, type Found, needing, ok, warning } from './finding.ts';
import { type Installed, masterKeyOf, requireInstalled } from './installation.ts';

/** Checks of what sessions need to keep their states: the master key and room in the store. */

/** Sees that the Secret with the master key is there. Its content is not read. */
export async function masterKeyFound(
  installed: readonly Installed[],
  { api }: KubeCluster,
  signal: AbortSignal,
): Promise<Found[]> {
  requireInstalled(installed);
  return Promise.all(
    installed.map(async (each) => {
      const { namespace } = each;
      const secret = masterKeyOf(each);
      const read = secretMetadata(api, { namespace, name: secret }, signal);
      if (await needing(`get the Secret ${namespace}/${secret}`, read)) {
        return ok(`the Secret ${namespace}/${secret} is there; its content was not read`);
      }
      return error(
        `the Secret ${namespace}/${secret} is missing: stored states cannot be opened`,
        'put it back from a backup before a controller makes another (docs/operations.md#the-master-key)',
      );
    }),
  );
}

/** Blobs in a page of metadata. */
const PAGE = 500;
/** Parts of the store above which it is worth a look, and nearly full. */
const MUCH = 0.8;
const FULL = 0.95;

/** Says how full the store is, by the sizes that the Blobs say themselves. */
export async function storeFound(
  installed: readonly Installed[],
  { api }: KubeCluster,
  signal: AbortSignal,
): Promise<Found[]> {
  requireInstalled(installed);
  const byNamespace = new Map<string, number>();
  const read = eachPage(api, blobs, { limit: PAGE, metadataOnly: true, signal }, ({ items }) => {
    for (const { metadata } of items) {
      const bytes = Number(metadata.annotations?.[ANNOTATION_BLOB_BYTES] ?? 0);
      byNamespace.set(metadata.namespace, (byNamespace.get(metadata.namespace) ?? 0) + bytes);
    }
  });
  await needing('list blobs.berth.dev in all namespaces', read);
  const used = [...byNamespace.values()].reduce((sum, bytes) => sum + bytes, 0);
  const ceiling = Math.max(...installed.map(({ ceilingBytes }) => ceilingBytes));
  const [largest] = [...byNamespace].toSorted(([, a], [, b]) => b - a);
  const part = ceiling > 0 ? used / ceiling : 1;
  const most = largest ? `; namespace ${largest[0]} holds the most, ${mebibytes(largest[1])}` : '';
  const message = `the store holds ${mebibytes(used)} of ${mebibytes(ceiling)} (${Math.floor(part * 100)}%)${most}`;
  const act =
    'delete sessions and turns that are not needed, or raise controller.storeCeilingBytes (docs/runbooks.md#a-full-store)';
  if (part >= FULL) return [error(message, act)];
  return [part >= MUCH ? warning(message, act) : ok(message)];
}

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
