import type { LinkView } from './link-view.ts';
import type { CachedSession } from './world.ts';

/** Returns the UID of the pod whose runner was bound, as the status says, perhaps by an earlier leader. */
export function podSaidBound({ status }: Pick<CachedSession, 'status'>): string | undefined {
  const was = status?.conditions?.some(
    ({ type, status: value, reason }) =>
      (type === 'Ready' && value === 'True') || (type === 'Suspended' && reason === 'Suspending'),
  );
  return was ? status?.podUID : undefined;
}

/**
 * Returns the UID of the pod whose runner is known to have been bound, by its link or by the status. Neither outlives the pod: the link
 * is closed before its deletion, and the status stops to show it ready.
 */
export function boundPod(world: { session: CachedSession; link: LinkView | undefined }): string | undefined {
  const { session, link } = world;
  return link && (link.bound !== undefined || link.resumed) ? link.podUID : podSaidBound(session);
}
