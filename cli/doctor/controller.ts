import type { AnswerTime } from '../../core/kube/server-clock.ts';
import { VERSION } from '../../core/program/version.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { error, type Found, ok, warning } from './finding.ts';
import { type Deployment, type Installed, leaseOf, requireInstalled } from './installation.ts';

/** Checks of the programs of an installation: the Deployments, their release, and the Lease of the controllers. */

export function controllerFound(found: readonly Installed[]): Found[] {
  if (found.length === 0) {
    const act = 'install the chart (docs/install.md), or ask whoever runs the cluster';
    return [error('no controller of Berth is installed: no Deployment has its labels', act)];
  }
  return found.flatMap(({ controller, api, namespace, release }) => {
    if (!controller) return [ok(`the embedded cluster runs Berth ${release ?? 'of an unknown release'}`)];
    return [controller, ...(api ? [api] : [])].map((each) => deploymentFound(each, namespace));
  });
}

function deploymentFound({ metadata: { name }, spec, status }: Deployment, namespace: string): Found {
  const { replicas = 1 } = spec;
  const { readyReplicas = 0, updatedReplicas = 0 } = status ?? {};
  const where = `Deployment ${namespace}/${name}`;
  if (replicas === 0) {
    const act = `kubectl scale deployment ${name} --namespace ${namespace} --replicas 2`;
    return error(`${where} is scaled to 0`, act);
  }
  const look = `kubectl describe deployment ${name} --namespace ${namespace}, and the log of its pods`;
  if (readyReplicas === 0) return error(`${where} has no ready pod of ${replicas}`, look);
  if (readyReplicas < replicas || updatedReplicas < replicas) {
    return warning(`${where}: ${readyReplicas} of ${replicas} pods are ready, ${updatedReplicas} are up to date`, look);
  }
  return ok(`${where}: ${readyReplicas} of ${replicas} pods are ready`);
}

/** Compares the release of each installation with that of this program. */
export function releaseFound(found: readonly Installed[]): Found[] {
  requireInstalled(found);
  return found.map(({ namespace, name, release }) => {
    const of = `${namespace}/${name}`;
    if (release === VERSION) return ok(`${of} and this program are ${VERSION}`);
    const act = `use the command line of release ${release ?? 'the installation'}; what follows is judged by ${VERSION}`;
    return warning(`${of} is ${release ?? 'of an unknown release'}, this program is ${VERSION}`, act);
  });
}

/** Difference of clocks that is not worth a word, milliseconds: ages are shown in seconds. */
const AGREE_MS = 5_000;

/** Compares the clock of this machine with that of the API server. `now`: of this machine, when the answer had come. */
export function clockFound(
  answer: AnswerTime | undefined,
  { now, monotonic }: { now: number; monotonic: number },
): Found {
  const written = Date.parse(answer?.date ?? '');
  if (!answer || Number.isNaN(written)) return warning('the API server sends no Date', 'compare its clock by hand');
  // The header is cut to whole seconds, and was written between the request and its answer.
  const ours = now - monotonic;
  const least = written - (ours + answer.receivedAt);
  const most = written + 1000 - (ours + answer.sentAt);
  const offset = least > 0 ? least : Math.min(0, most);
  if (Math.abs(offset) <= AGREE_MS) return ok('the clocks of this machine and of the API server agree');
  const word = offset > 0 ? 'behind' : 'ahead of';
  return warning(
    `the clock of this machine is ${Math.round(Math.abs(offset) / 1000)} s ${word} that of the API server`,
    'synchronise it: ages and times that berth prints are wrong by that much',
  );
}

/** Time that a renewal may lie in the future, milliseconds: the controller follows the API server's clock by its answers. */
const AHEAD_MS = 5_000;

/** Judges whether a controller leads. `serverNow`: the API server's time, milliseconds since the epoch. */
export async function leaseFound(
  installed: readonly Installed[],
  cluster: KubeCluster,
  serverNow: () => number,
  signal: AbortSignal,
): Promise<Found[]> {
  requireInstalled(installed);
  return Promise.all(
    installed.map(async (each) => {
      const lease = await leaseOf(each, cluster, signal);
      const { holderIdentity, renewTime = '', leaseDurationSeconds = 15 } = lease?.spec ?? {};
      const of = `the Lease of ${each.namespace}/${each.name}`;
      const act = 'no turn starts; see that the controller runs, and read its log and /readyz';
      if (!lease) return error(`${of} does not exist: no controller has ever led`, act);
      if (!holderIdentity) return error(`${of} has no holder: no controller leads`, act);
      const age = serverNow() - Date.parse(renewTime);
      if (age > leaseDurationSeconds * 1000) {
        return error(`${of} was renewed ${Math.round(age / 1000)} s ago, and lasts ${leaseDurationSeconds} s`, act);
      }
      if (age < -AHEAD_MS) {
        const message = `${of} was renewed ${Math.round(-age / 1000)} s in the API server's future`;
        return warning(message, 'the API servers’ clocks differ, or one was set back; synchronise them');
      }
      return ok(`${of} is held by ${holderIdentity}`);
    }),
  );
}
