/** The controller that leads, and its processes on the nodes. */
import { eventually } from '../../support/eventually.ts';
import { controllerPods, get, podOf, releaseNamespace } from './cluster.ts';
import { type NodeProcess, processes } from './node.ts';

const CONTROLLER = '/opt/berth/controller.mjs';

export interface Leader {
  /** Identity of one process: a restarted container is another leader. */
  identity: string;
  pod: string;
  targets: NodeProcess[];
}

/**
 * Resolves to the holder of the lease once it differs from `before` and its process runs: a lease outlives its holder. With
 * `settled`, once the same version of the lease says that this holder has settled: an earlier one says it of another.
 */
export function leader({
  before,
  settled = false,
}: {
  before?: Leader | undefined;
  settled?: boolean;
} = {}): Promise<Leader> {
  return eventually(
    async () => {
      const { metadata, spec } = await get(['lease', 'berth-controller', '-n', releaseNamespace]);
      if (settled && metadata.annotations?.['berth.dev/settled'] !== 'true') return undefined;
      const identity: string = spec.holderIdentity ?? '';
      const pods = (await controllerPods()).filter(({ metadata }) => !metadata.deletionTimestamp);
      const pod: string | undefined = podOf(identity, pods)?.metadata.name;
      if (!pod || identity === before?.identity) return undefined;
      const targets = await processes(CONTROLLER, pod);
      return targets.length > 0 ? { identity, pod, targets } : undefined;
    },
    { timeoutMs: 120_000, what: 'a controller leads' },
  );
}
