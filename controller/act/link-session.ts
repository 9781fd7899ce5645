import type { ReconcileContext } from './context.ts';

/** Identity of the session for a link to its present pod. */
export function linkSession({ key, world: { session } }: ReconcileContext): {
  key: string;
  uid: string;
  incarnation: number;
} {
  return { key, uid: session.metadata.uid, incarnation: session.status?.incarnation ?? 0 };
}
