import { ifThere, isNotFound } from '../../core/kube/errors.ts';
import { formatDuration } from '../../core/resources/duration.ts';
import { sessionclasses, sessions, turns } from '../../core/resources/kinds.ts';
import { LIVE_TURNS } from '../../core/resources/turn-phases.ts';
import type { Expiry } from '../decide/actions.ts';
import { retention } from '../settings/retention.ts';
import type { ReconcileContext } from './context.ts';

/**
 * Deletes the session at exactly the version of the decision, after live reads of its turns and of its class, whose TTL may
 * be longer now. A turn that has woken it has changed that version. A deletion needs two clocks that agree, the API
 * server's and our own.
 */
export async function expire(
  { effects, world, key, signal }: ReconcileContext,
  { field, since, ttlMs }: Expiry,
): Promise<void> {
  const { api, caches, log, notify, ownTime } = effects;
  const { metadata } = world.session;
  const { name, uid, resourceVersion } = metadata;
  const namespace = metadata.namespace;
  if (ownTime() < since + ttlMs) {
    log.warn({ session: key, field }, 'session not deleted yet: not expired by the clock of the controller');
    return;
  }
  const ofClass = await ifThere(api.get(sessionclasses, { name: world.session.spec.class }, { signal }));
  const { finishedMs, suspendedMs } = retention(world.session, ofClass);
  if (ttlMs < (field === 'ttlAfterFinished' ? finishedMs : suspendedMs)) return;
  const fieldSelector = `spec.session=${name},${LIVE_TURNS}`;
  const { items: waiting } = await api.list(turns, { namespace, fieldSelector, signal });
  caches.saw(turns, ...waiting);
  if (waiting.some(({ metadata }) => !caches.isLeftOut(metadata))) return;
  try {
    await api.delete(sessions, { namespace, name }, { uid, resourceVersion, signal });
  } catch (error) {
    if (isNotFound(error)) return;
    throw error;
  }
  const message = `The session was deleted as ${field} (${formatDuration(ttlMs)}) was over.`;
  log.info({ session: key, uid, field }, 'session expired');
  notify(world.session, { type: 'Normal', reason: 'Expired', message });
}
