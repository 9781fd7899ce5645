import type { ReconcileContext } from './context.ts';

/** Whom a link to the session's present pod belongs to. */
export function linkSession({ key, world: { session } }: ReconcileContext): {
  key: string;
  uid: string;
  incarnation: number;
} {
  return { key, uid: session.metadata.uid, incarnation: session.status?.incarnation ?? 0 };
}
