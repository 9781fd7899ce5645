/** The kind cluster as the contract of the Kubernetes API asks it. */
import type { ContractTarget } from '../../contract/target.ts';
import { eventually } from '../../support/eventually.ts';
import { apply, kubectl } from './cluster.ts';

const decode = (text: string) => Buffer.from(text, 'base64').toString();
const name = 'contract-admin';
const namespace = 'kube-system';

/** An administrator with a token: a client certificate, which kind's kubeconfig has, would go before every other token that a test sends. */
async function adminToken(): Promise<string> {
  await apply(
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name } },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'ServiceAccount', namespace, name }],
    },
  );
  // The API server hears of a binding by a watch of its own.
  const may = ['auth', 'can-i', '*', '*', '--all-namespaces', '--as', `system:serviceaccount:${namespace}:${name}`];
  await eventually(() => kubectl(may), { what: `${name} may do everything` });
  return (await kubectl(['create', 'token', name, '-n', namespace])).trim();
}

export async function connect(): Promise<ContractTarget> {
  const { clusters } = JSON.parse(await kubectl(['config', 'view', '--raw', '-o', 'json']));
  const { cluster } = clusters[0];
  const ca = decode(cluster['certificate-authority-data']);
  return { connection: { url: cluster.server, ca, token: await adminToken() }, close: async () => {} };
}
