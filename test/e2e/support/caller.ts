import { eventually } from '../../support/eventually.ts';
import { apply, kubectl } from './cluster.ts';

/** A service account that may do `role` in the namespace; resolves to a token for the API. */
export async function caller(
  namespace: string,
  name: string,
  role: 'view' | 'edit' | undefined,
  audience = 'berth',
): Promise<string> {
  await apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name } });
  if (role) {
    await apply({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { namespace, name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', namespace, name }],
    });
  }
  // The API server hears of a binding by a watch of its own.
  const mayList = ['auth', 'can-i', 'list', 'sessions.berth.dev', '-n', namespace];
  const as = ['--as', `system:serviceaccount:${namespace}:${name}`];
  if (role) await eventually(() => kubectl([...mayList, ...as]), { what: `${name} may ${role}` });
  return (await kubectl(['create', 'token', name, '-n', namespace, '--audience', audience])).trim();
}
