import type { Controllers } from './controllers/controllers.ts';
import type { Json } from './object.ts';
import type { Registry } from './registry/registry.ts';

const everything = { apiGroups: ['*'], resources: ['*'], verbs: ['*'] };
const rbacGroup = 'rbac.authorization.k8s.io';

/** Namespaces and RBAC objects that every cluster has from the start. */
const objects: { storage: string; object: Json }[] = [
  ...['default', 'kube-system', 'kube-public', 'kube-node-lease'].map((name) => ({
    storage: 'namespaces',
    object: { metadata: { name } },
  })),
  role('cluster-admin', [everything, { nonResourceURLs: ['*'], verbs: ['*'] }]),
  role('system:discovery', [
    {
      nonResourceURLs: [
        '/api',
        '/api/*',
        '/apis',
        '/apis/*',
        '/healthz',
        '/livez',
        '/openapi',
        '/openapi/*',
        '/readyz',
        '/version',
        '/version/',
      ],
      verbs: ['get'],
    },
  ]),
  role('system:basic-user', [
    {
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
      verbs: ['create'],
    },
    { apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'], verbs: ['create'] },
  ]),
  binding('cluster-admin', 'system:masters'),
  binding('system:discovery', 'system:authenticated'),
  binding('system:basic-user', 'system:authenticated'),
];

function role(name: string, rules: Json[]) {
  return { storage: `clusterroles.${rbacGroup}`, object: { metadata: { name }, rules } };
}

function binding(name: string, group: string) {
  return {
    storage: `clusterrolebindings.${rbacGroup}`,
    object: {
      metadata: { name },
      roleRef: { apiGroup: rbacGroup, kind: 'ClusterRole', name },
      subjects: [{ apiGroup: rbacGroup, kind: 'Group', name: group }],
    },
  };
}

/** Creates those that are missing. */
export function bootstrap(registry: Registry, controllers: Controllers): void {
  for (const { storage, object } of objects) {
    const type = registry.catalogue.byStorage(storage);
    const { name } = object.metadata as { name: string };
    if (!type || registry.store.get(storage, undefined, name)) continue;
    registry.create(type, undefined, structuredClone(object), controllers.request);
  }
}
