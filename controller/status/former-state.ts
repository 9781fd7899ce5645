import type { StoredSession } from '../../core/resources/kinds.ts';
import { parseStoreKey } from '../../core/resources/names.ts';
import type { SessionStatus } from '../../core/resources/session.ts';

/** Difference above which an earlier activity is no matter of two clocks, milliseconds. */
const OLDER_MS = 5 * 60_000;

/** Sentence for a state of another uid; see `reasons.StateUnavailable`. */
export const FORMER_STATE =
  'The stored state is of a session with another uid, as after a restore object by object: it is sealed with a key of that uid, and no key of this session opens it. Restore etcd as a whole, or create the session anew.';

/**
 * Reports whether the state in the status was stored under another uid of the session: it names the content of that uid, or the session
 * was active before this object was created.
 */
export function isOfFormerUid(
  { metadata }: Pick<StoredSession, 'metadata'>,
  { state, lastActiveAt }: SessionStatus,
): boolean {
  if (!state) return false;
  const key = state.ref === undefined ? undefined : parseStoreKey(state.ref);
  if (key) return key.sessionUID !== metadata.uid;
  return lastActiveAt !== undefined && Date.parse(lastActiveAt) + OLDER_MS < Date.parse(metadata.creationTimestamp);
}
