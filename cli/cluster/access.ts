import type { KubeClient } from '../../core/kube/client.ts';

/** Attributes of a request, as RBAC judges them. */
interface Attributes {
  namespace: string;
  verb: string;
  group: string;
  resource: string;
  subresource?: string;
}

const ACCESS_REVIEW = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/** Asks the API server whether the caller may do this. */
export async function isAllowed(
  api: Pick<KubeClient, 'raw'>,
  resourceAttributes: Attributes,
  signal: AbortSignal,
): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes },
  };
  const review = await api.raw('POST', ACCESS_REVIEW, { body, readOnly: true, signal });
  return (review as { status?: { allowed?: boolean } }).status?.allowed === true;
}
