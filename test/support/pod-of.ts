import type { StoredPod } from '../../core/kube/builtin.ts';

/** Pod of a session's incarnation, as far as readers of logs look at it. */
export function podOf(
  session: string,
  incarnation: number,
  uid: string,
  labels: Record<string, string> = {},
): StoredPod {
  return {
    metadata: {
      name: 'pod',
      namespace: 'default',
      uid,
      resourceVersion: '1',
      labels: { 'berth.dev/session-uid': session, 'berth.dev/incarnation': String(incarnation), ...labels },
      ownerReferences: [{ apiVersion: 'berth.dev/v1alpha1', kind: 'Session', name: 'notes', uid: session }],
    },
    spec: { containers: [] },
  } as unknown as StoredPod;
}
