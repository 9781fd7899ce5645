import { unpackContents } from '../../core/artifacts/packed.ts';
import type { FrameOf, Result } from '../../core/frames/messages.ts';
import { lostNumber } from '../../core/json.ts';
import {
  jsonBytes,
  MAX_INLINE_LOG_BYTES,
  MAX_INLINE_OUTPUT_BYTES,
  MAX_INLINE_STATE_BYTES,
  MAX_OUTPUT_BYTES,
} from '../../core/resources/limits.ts';
import { storeKey } from '../../core/resources/names.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import { clockJumpsOf } from '../../core/runtime.ts';
import { type Store, StoreFullError, type StoreKey } from '../../core/store/store.ts';
import { movedByClockJumps } from '../observed/clock-jumps.ts';
import type { Delivery } from '../observed/link-view.ts';
import { learn } from '../observed/memory.ts';
import type { CachedTurn, World } from '../observed/world.ts';
import { limitsOf } from '../settings/granted.ts';
import type { StoredDelivery } from '../status/outcome.ts';
import { boundedWait } from './bounded-wait.ts';
import type { ReconcileContext } from './context.ts';

/** Minimum time for storing a part, milliseconds, also after the deadline: the store may have refused another part only. */
const LAST_CHANCE_MS = 10_000;

/** A result, or a request, with what belongs to it. */
export interface Deliverable extends Pick<Delivery, 'state' | 'artifacts' | 'log'> {
  result: { seq: number; message: Pick<Result, 'state' | 'output' | 'logSeq' | 'artifactsSeq'> };
}

/** Stores the parts that are too large for a status. A store that is full or keeps failing costs that part, never the turn. */
export async function storeDelivery(
  outer: ReconcileContext,
  turn: CachedTurn,
  delivery: Deliverable,
): Promise<StoredDelivery> {
  const { context, history } = countingHistory(outer);
  const { message, seq } = delivery.result;
  const { persistMs } = limitsOf(turn, context.world);
  const incarnation = incarnationOf(turn);
  const stored: StoredDelivery = { problems: [] };

  if (message.state !== 'Unchanged') {
    if (delivery.state?.message.digest === message.state.digest) {
      const { state } = delivery;
      await attempt(context, persistMs, stored, 'StateNotStored', async (bounded) => {
        stored.state = await storeState(bounded, state, incarnation);
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
    const isInline = bytes <= MAX_INLINE_OUTPUT_BYTES && lostNumber(message.output) === undefined;
    if (isInline) stored.output = message.output;
    else if (bytes > MAX_OUTPUT_BYTES) {
      const text = `The output has ${bytes} bytes, more than the ${MAX_OUTPUT_BYTES} allowed; write it to a file or service instead.`;
      stored.problems.push({ reason: 'OutputTooLarge', message: text });
    } else {
      await attempt(context, persistMs, stored, 'StoreFull', async (bounded) => {
        stored.outputRef = await put(
          bounded,
          'Output',
          { incarnation, seq },
          Buffer.from(JSON.stringify(message.output)),
        );
      });
    }
  }

  if (message.artifactsSeq !== undefined) {
    const { artifacts } = delivery;
    const content = artifacts && (await unpackContents(artifacts.message.files, artifacts.binary));
    if (content) {
      await attempt(context, persistMs, stored, 'ArtifactsNotStored', async (bounded) => {
        stored.artifacts = await storeArtifacts(bounded, artifacts, content, incarnation);
      });
    } else {
      stored.problems.push({
        reason: 'ArtifactsNotStored',
        message: 'The runner did not deliver the artifacts that the result names.',
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
      await attempt(context, persistMs, aside, 'StoreFull', async (bounded) => {
        stored.log = {
          ref: await put(bounded, 'Log', { incarnation, seq: log.seq }, Buffer.from(text)),
          bytes,
          truncated,
        };
      });
      stored.log ??= { bytes, truncated: true };
    }
  } else if (message.logSeq !== undefined) {
    // The log was rotated away before the runner's frames were read: how much it was is not known.
    stored.log = { bytes: 0, truncated: true };
  }
  learn(context.memory, { fact: 'DeliveryStored', history: history() });
  return stored;
}

/** The incarnation whose pod ran the turn. Its deliveries keep its label, even in a session with a later one. */
export function incarnationOf({ metadata, status }: CachedTurn): number {
  if (status.incarnation === undefined) throw new TypeError(`turn ${metadata.name} was given to no incarnation`);
  return status.incarnation;
}

/**
 * Small states go into the status itself, larger ones into the store; sealed either way. `incarnation`: of the pod whose
 * runner made it, because numbers of frames order states within one pod only.
 */
export async function storeState(
  context: ReconcileContext,
  state: FrameOf<'state'>,
  incarnation: number,
): Promise<StateRef> {
  const { digest, keyId, bytes } = state.message;
  const facts = { digest, keyId, bytes, incarnation, seq: state.seq };
  if (state.binary.length <= MAX_INLINE_STATE_BYTES) return { ...facts, inline: state.binary.toString('base64') };
  return { ...facts, ref: await put(context, 'State', { incarnation, seq: state.seq }, state.binary) };
}

/** Stores the files as one content, one after the other. */
async function storeArtifacts(
  context: ReconcileContext,
  { seq, message: { files, leftOut } }: FrameOf<'artifacts'>,
  content: Buffer,
  incarnation: number,
): Promise<NonNullable<StoredDelivery['artifacts']>> {
  const named = leftOut ? { artifactsLeftOut: leftOut } : {};
  if (files.length === 0) return named;
  const ref = await put(context, 'Artifacts', { incarnation, seq }, content);
  let next = 0;
  const artifacts = files.map((file) => {
    const offset = next;
    next += file.bytes;
    return { ...file, ref, offset };
  });
  return { artifacts, ...named };
}

async function put(
  { effects, world, signal }: ReconcileContext,
  kind: StoreKey['kind'],
  { incarnation, seq }: { incarnation: number; seq: number },
  data: Buffer,
) {
  const { metadata } = world.session;
  const owner = { name: metadata.name, uid: metadata.uid };
  await effects.store.put(
    { namespace: metadata.namespace, sessionUID: metadata.uid, incarnation, seq, kind },
    data,
    owner,
    signal,
  );
  return storeKey(metadata.uid, incarnation, seq);
}

/** Start of the failures to store, milliseconds since the epoch: as an earlier leader has written it, else now. */
function notStoredSince({ session, link }: World, now: number): number {
  const condition = session.status?.conditions?.find(({ type }) => type === 'StatePersisted');
  if (condition?.reason !== 'StateNotStored') return now;
  // The condition may be about the state of an earlier suspension.
  const ended = link?.delivery?.result.message.finishedAt ?? link?.asking?.request.message.at;
  return Math.min(now, Math.max(Date.parse(condition.lastTransitionTime), Date.parse(ended ?? '') || 0));
}

/** Stores a part. The queue retries it until the turn's `timeouts.persist` is over, also with a slow store; a full one is an answer. */
async function attempt(
  context: ReconcileContext,
  persistMs: number,
  stored: StoredDelivery,
  reason: 'StateNotStored' | 'ArtifactsNotStored' | 'StoreFull',
  write: (bounded: ReconcileContext) => Promise<void>,
): Promise<void> {
  const { memory, effects, signal, world } = context;
  const { clock } = effects;
  const since = memory.incarnation.commitProblem?.since ?? notStoredSince(world, clock.now());
  const waitedSince = () => movedByClockJumps(since, clockJumpsOf(clock));
  const deadline = Math.max(waitedSince() + persistMs, clock.now() + Math.min(persistMs, LAST_CHANCE_MS));
  try {
    await boundedWait({ effects, deadline, signal }, (waiting) => write({ ...context, signal: waiting }));
  } catch (error) {
    if (signal.aborted) throw error;
    const message = error instanceof Error ? error.message : String(error);
    if (!(error instanceof StoreFullError) && clock.now() - waitedSince() < persistMs) {
      learn(memory, { fact: 'CommitFailed', problem: { reason: 'StateNotStored', message }, since });
      throw error;
    }
    // An Environment is built again where its archive could not be stored for a time, and fails where the store is full.
    const isFullForBuild = error instanceof StoreFullError && world.session.spec.build;
    stored.problems.push({ reason: isFullForBuild ? 'StoreFull' : reason, message });
  }
}

/**
 * The context, with a store that counts the bytes of outputs and artifacts that it takes or has no room for. A log does not
 * count, because a turn is complete without it.
 */
function countingHistory(context: ReconcileContext): { context: ReconcileContext; history: () => number } {
  const { effects } = context;
  let bytes = 0;
  const put: Store['put'] = async (key, ...args) => {
    const count = (more: number) => {
      if (key.kind === 'Output' || key.kind === 'Artifacts') bytes += more;
      return more;
    };
    try {
      return count(await effects.store.put(key, ...args));
    } catch (error) {
      if (error instanceof StoreFullError) count(error.wanted);
      throw error;
    }
  };
  const store = { ...effects.store, put };
  return { context: { ...context, effects: { ...effects, store } }, history: () => bytes };
}
