import type { Lease } from '../../core/kube/builtin.ts';
import { ifThere } from '../../core/kube/errors.ts';
import { leases } from '../../core/kube/resources.ts';
import type { Stored } from '../../core/kube/types.ts';
import { DEFAULT_STORE_CEILING_BYTES } from '../../core/resources/limits.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { needing, Skipped } from './finding.ts';

/** A Deployment of the chart, with the fields that are judged. */
export interface Deployment {
  metadata: { name: string; namespace: string; labels?: Record<string, string> };
  spec: {
    replicas?: number;
    template: {
      spec: { serviceAccountName?: string; containers: { env?: { name: string; value?: string }[] }[] };
    };
  };
  status?: { readyReplicas?: number; updatedReplicas?: number };
}

/** An installation of Berth: a release of the chart, or the embedded cluster. */
export interface Installed {
  namespace: string;
  /** Prefix of its names. */
  name: string;
  /** Release of Berth; undefined where nothing says it. */
  release: string | undefined;
  /** Absent on the embedded cluster, whose programs are processes. */
  controller?: Deployment;
  api?: Deployment;
  /** User names of the accounts of controller and API. */
  accounts: { controller: string; api: string };
  ceilingBytes: number;
}

const DEPLOYMENTS = '/apis/apps/v1/deployments';
const LABELS = 'app.kubernetes.io/name=berth';
const COMPONENT = 'app.kubernetes.io/component';
const INSTANCE = 'app.kubernetes.io/instance';

/** Namespace of the embedded cluster's accounts, Lease and Secret. */
const EMBEDDED_NAMESPACE = 'berth-system';

/** Finds the installations of the cluster. Rejects with a Skipped where the caller may not list Deployments. */
export async function findInstalled({ api, embedded }: KubeCluster, signal: AbortSignal): Promise<Installed[]> {
  if (await embedded()) {
    const { berthVersion } = (await api.raw('GET', '/version', { signal })) as { berthVersion?: string };
    return [installed({ namespace: EMBEDDED_NAMESPACE, name: 'berth', release: berthVersion })];
  }
  const read = api.raw('GET', DEPLOYMENTS, { query: { labelSelector: LABELS }, signal });
  const { items } = (await needing('list deployments.apps in all namespaces', read)) as { items: Deployment[] };
  const isOf = ({ metadata }: Deployment, component: string) => metadata.labels?.[COMPONENT] === component;
  return items
    .filter((each) => isOf(each, 'controller'))
    .map((controller) => {
      const { namespace, name, labels = {} } = controller.metadata;
      const own = items.find(
        (each) =>
          isOf(each, 'api') &&
          each.metadata.namespace === namespace &&
          each.metadata.labels?.[INSTANCE] === labels[INSTANCE],
      );
      return installed({
        namespace,
        name: name.replace(/-controller$/, ''),
        release: labels['app.kubernetes.io/version'],
        controller,
        ...(own ? { api: own } : {}),
      });
    });
}

function installed(of: Omit<Installed, 'accounts' | 'ceilingBytes'>): Installed {
  const account = (deployment: Deployment | undefined, program: string) =>
    `system:serviceaccount:${of.namespace}:${deployment?.spec.template.spec.serviceAccountName ?? `${of.name}-${program}`}`;
  const ceiling = settingOf(of.controller, 'BERTH_STORE_CEILING_BYTES');
  return {
    ...of,
    accounts: { controller: account(of.controller, 'controller'), api: account(of.api, 'api') },
    ceilingBytes: ceiling === undefined ? DEFAULT_STORE_CEILING_BYTES : Number(ceiling),
  };
}

/** Returns a setting of the program in its Deployment. */
function settingOf(deployment: Deployment | undefined, variable: string): string | undefined {
  const env = deployment?.spec.template.spec.containers.flatMap(({ env = [] }) => env);
  return env?.find(({ name }) => name === variable)?.value;
}

/** Name of the Secret with the master key of an installation. */
export const masterKeyOf = ({ name, controller }: Installed): string =>
  settingOf(controller, 'BERTH_MASTER_KEY_SECRET') ?? `${name}-master-key`;

/** Name of the Lease of an installation's controllers. */
export const leaseNameOf = ({ name, controller }: Installed): string =>
  settingOf(controller, 'BERTH_LEASE_NAME') ?? `${name}-controller`;

/** Reads the Lease of an installation's controllers; undefined where there is none. */
export function leaseOf(
  installed: Installed,
  { api }: KubeCluster,
  signal: AbortSignal,
): Promise<Stored<Lease> | undefined> {
  const { namespace } = installed;
  const read = ifThere(api.get(leases, { namespace, name: leaseNameOf(installed) }, { signal }));
  return needing(`get leases.coordination.k8s.io in namespace ${namespace}`, read);
}

/** Rejects with a Skipped where the cluster has no installation that the caller can see. */
export function requireInstalled(found: readonly Installed[]): void {
  if (found.length === 0) throw new Skipped('no controller was found, see the check controller');
}
