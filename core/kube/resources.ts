import type {
  ConfigMap,
  CustomResourceDefinition,
  Event,
  Lease,
  Namespace,
  NetworkPolicy,
  Node,
  PersistentVolumeClaim,
  Pod,
  Secret,
  ServiceAccount,
  SubjectAccessReview,
  TokenReview,
} from './builtin.ts';
import type { KubeObject, Resource } from './types.ts';

function core<T extends KubeObject>(plural: string, kind: string, namespaced = true): Resource<T> {
  return { group: '', version: 'v1', plural, kind, namespaced };
}

export const pods = core<Pod>('pods', 'Pod');
export const secrets = core<Secret>('secrets', 'Secret');
export const persistentVolumeClaims = core<PersistentVolumeClaim>('persistentvolumeclaims', 'PersistentVolumeClaim');
export const configMaps = core<ConfigMap>('configmaps', 'ConfigMap');
export const events = core<Event>('events', 'Event');
export const serviceAccounts = core<ServiceAccount>('serviceaccounts', 'ServiceAccount');
export const namespaces = core<Namespace>('namespaces', 'Namespace', false);
export const nodes = core<Node>('nodes', 'Node', false);

export const leases: Resource<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};

export const networkPolicies: Resource<NetworkPolicy> = {
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'networkpolicies',
  kind: 'NetworkPolicy',
  namespaced: true,
};

export const tokenReviews: Resource<TokenReview> = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'tokenreviews',
  kind: 'TokenReview',
  namespaced: false,
};

export const subjectAccessReviews: Resource<SubjectAccessReview> = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'subjectaccessreviews',
  kind: 'SubjectAccessReview',
  namespaced: false,
};

export const customResourceDefinitions: Resource<CustomResourceDefinition> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
};
