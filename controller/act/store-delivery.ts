import type { FrameOf } from '../../core/frames/messages.ts';
import {
  jsonBytes,
  MAX_INLINE_LOG_BYTES,
  MAX_INLINE_OUTPUT_BYTES,
  MAX_INLINE_STATE_BYTES,
  MAX_OUTPUT_BYTES,
} from '../../core/resources/limits.ts';
import { storeKey } from '../../core/resources/names.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import { StoreFullError } from '../../core/store/store.ts';
import type { StoredDelivery } from '../decide/outcome.ts';
import type { Delivery } from '../link/view.ts';
import type { Pass } from './context.ts';

/** How long a failing store may hold a result, and with it a running place. */
export const PERSIST_MS = 5 * 60_000;

/** Stores what is too large for a status; a store that is full or keeps failing costs that part, never the turn. */
export async function storeDelivery(pass: Pass, delivery: Delivery): Promise<StoredDelivery> {
  const { message, seq } = delivery.result;
  const stored: StoredDelivery = { problems: [] };

  if (message.state !== 'Unchanged') {
    if (delivery.state?.message.digest === message.state.digest) {
      const { state } = delivery;
      await attempt(pass, stored, 'StateNotStored', async () => {
        stored.state = await storeState(pass, state);
      });
    } else {
      stored.problems.push({
        reason: 'StateNotStored',
        message: 'The runner did not deliver the state that the result names.',
      });
    }
  }

  if (message.output !== undefined) {
    const bytes = jsonBytes(message.output);
    stored.outputBytes = bytes;
    if (bytes <= MAX_INLINE_OUTPUT_BYTES) stored.output = message.output;
    else if (bytes > MAX_OUTPUT_BYTES) {
      const text = `The output has ${bytes} bytes, more than the ${MAX_OUTPUT_BYTES} allowed; write it to a file or service instead.`;
      stored.problems.push({ reason: 'OutputTooLarge', message: text });
    } else {
      await attempt(pass, stored, 'StoreFull', async () => {
        stored.outputRef = await put(pass, 'Output', seq, Buffer.from(JSON.stringify(message.output)));
      });
    }
  }

  const log = delivery.log;
  if (log) {
    const { text, bytes, truncated } = log.message;
    if (Buffer.byteLength(text) <= MAX_INLINE_LOG_BYTES) stored.log = { inline: text, bytes, truncated };
    else {
      // A log that cannot be stored is no reason to fail a turn.
      const aside: StoredDelivery = { problems: [] };
      await attempt(pass, aside, 'StoreFull', async () => {
        stored.log = { ref: await put(pass, 'Log', log.seq, Buffer.from(text)), bytes, truncated };
      });
      stored.log ??= { bytes, truncated: true };
    }
  }
  return stored;
}

/** Small states go into the status itself, larger ones into the store; sealed either way. */
export async function storeState(pass: Pass, state: FrameOf<'state'>): Promise<StateRef> {
  const { digest, keyId, bytes } = state.message;
  const place = { digest, keyId, bytes, incarnation: pass.world.session.status?.incarnation ?? 0, seq: state.seq };
  if (state.binary.length <= MAX_INLINE_STATE_BYTES) return { ...place, inline: state.binary.toString('base64') };
  return { ...place, ref: await put(pass, 'State', state.seq, state.binary) };
}

async function put({ effects, world, signal }: Pass, kind: 'State' | 'Output' | 'Log', seq: number, data: Buffer) {
  const { metadata, status } = world.session;
  const incarnation = status?.incarnation ?? 0;
  const owner = { name: metadata.name, uid: metadata.uid };
  await effects.store.put(
    { namespace: metadata.namespace as string, sessionUID: metadata.uid, incarnation, seq, kind },
    data,
    owner,
    signal,
  );
  return storeKey(metadata.uid, incarnation, seq);
}

/** Retried by the queue until the patience ends; a full store is an answer. */
async function attempt(
  pass: Pass,
  stored: StoredDelivery,
  reason: 'StateNotStored' | 'StoreFull',
  write: () => Promise<void>,
): Promise<void> {
  const { memory, effects, signal } = pass;
  try {
    await write();
  } catch (error) {
    if (signal.aborted) throw error;
    const now = effects.clock.now();
    const since = memory.commitProblem?.since ?? now;
    const message = error instanceof Error ? error.message : String(error);
    if (!(error instanceof StoreFullError) && now - since < PERSIST_MS) {
      memory.commitProblem = { reason: 'StateNotStored', message, since };
      throw error;
    }
    stored.problems.push({ reason, message });
  }
}
