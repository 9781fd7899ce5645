import { isTooLarge } from '../../core/kube/errors.ts';
import type { CachedSession, CachedTurn } from '../observed/world.ts';
import type { Effects } from './context.ts';

/**
 * A turn whose spec alone comes near what etcd takes can have no status: it is left out, as if it did not exist, and those
 * behind it run. An event says so.
 */
export async function writingTurn<R>(
  { caches, log, notify }: Pick<Effects, 'caches' | 'log' | 'notify'>,
  { metadata, spec, input }: CachedTurn,
  write: () => Promise<R>,
): Promise<R> {
  try {
    return await write();
  } catch (error) {
    if (isTooLarge(error)) {
      const { name, namespace } = metadata;
      caches.leaveOut(metadata, spec.session);
      log.warn({ turn: name, namespace, bytes: input.bytes, err: error }, 'turn is too large for a status');
      const size = input.tooDeep === undefined ? `with ${input.bytes} bytes in spec.input ` : '';
      const message = `The turn is left out: ${size}it is too large to be given a status. Delete it, and pass a reference to the data instead.`;
      notify({ metadata }, { type: 'Warning', reason: 'InputTooLarge', message }, 'Turn');
    }
    throw error;
  }
}

/** A session that nothing can be written of never starts; that is for its maker to mend. */
export async function writingSession<R>(
  { notify }: Pick<Effects, 'notify'>,
  session: CachedSession,
  write: () => Promise<R>,
): Promise<R> {
  try {
    return await write();
  } catch (error) {
    if (isTooLarge(error)) {
      const message =
        'The session is too large to be given a status, so it cannot start; shorten what is long in its spec, for example spec.agent.env or spec.input.';
      notify(session, { type: 'Warning', reason: 'InvalidSpec', message });
    }
    throw error;
  }
}
