import { parseDuration } from '../../../core/resources/duration.ts';
import {
  type StoredBlob,
  type StoredSession,
  type StoredTurn,
  sessions,
  turns,
} from '../../../core/resources/kinds.ts';
import { storeKey } from '../../../core/resources/names.ts';
import type { StateRef } from '../../../core/resources/schema.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import type { ControllerCall } from '../observer.ts';
import { CLOCK_MS } from './clocks.ts';
import { BLOBS, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { LiveReads } from './live-reads.ts';
import { isLater } from './states.ts';

/** Minimum age at which a blob may be removed. A younger one may belong to a commit that is under way. */
const MIN_AGE_MS = 3_600_000;
/** Minimum time for which a state is kept after its session's status has got a later one. */
const SUPERSEDED_MS = 60_000;

/** A turn of the history is removed only when it has ended, is counted, and its state is in the session's status. */
export const history: MakeInvariant = (facts) => ({
  called({ verb, resource, namespace, name, uid, process }) {
    if (verb !== 'delete' || resource !== 'turns') return;
    const turn = facts.server.get(turns, namespace, name);
    // The API server refuses the deletion of another turn that has the name by now.
    if (uid !== undefined && turn?.metadata.uid !== uid) return;
    const owner = turn?.metadata.ownerReferences?.find(({ kind }) => kind === 'Session')?.uid;
    const session = facts.session(owner ?? '');
    if (!turn || !session) return;
    const { phase, state, index = 0 } = turn.status ?? {};
    const fail = (why: string) => facts.fail('history', `${process} deletes turn ${name}, ${why}`);
    if (!isTerminal(phase)) fail(`which is ${phase ?? 'new'}`);
    if (state && (!session.status?.state || isLater(state, session.status.state))) fail('whose state is not copied');
    if (index > (session.status?.lastTurn?.index ?? 0)) fail('which is not counted');
  },
});

/**
 * A session is deleted once its TTL is over, counted from the sending of the write that made it Finished or Suspended.
 * No turn that was created before the controller's last live read is deleted with it.
 */
export const expired: MakeInvariant = (facts) => {
  const reads = new LiveReads(facts);
  const created = new Map<string, number>();
  const since = new Map<string, { phase: string | undefined; at: number }>();
  const sentAt = new WeakMap<ControllerCall, number>();
  const { server } = facts;
  return {
    sent: (call) => void sentAt.set(call, server.clock.now()),
    committed(change) {
      const { type, object, version } = change;
      const { uid = '' } = object.metadata;
      if (type === 'ADDED') created.set(uid, version);
      const { phase } = (object.status ?? {}) as { phase?: string };
      if (since.get(uid)?.phase === phase) return;
      const call = facts.callBehind(change);
      since.set(uid, { phase, at: (call && sentAt.get(call)) ?? server.clock.now() });
    },
    called(call) {
      reads.called(call);
      const { verb, resource, namespace, name, process } = call;
      if (verb !== 'delete' || resource !== 'sessions') return;
      const session = server.get(sessions, namespace, name);
      if (!session || session.metadata.deletionTimestamp || session.metadata.uid !== call.uid) return;
      // A build goes with its environment, whatever turns somebody has given it.
      if (session.spec.build) return;
      const { spec, metadata } = session;
      const { phase, at } = since.get(metadata.uid) ?? { phase: undefined, at: 0 };
      const ttl = phase === 'Finished' ? spec.ttlAfterFinished : spec.ttlAfterSuspended;
      const fail = (why: string) => facts.fail('expired', `${process} deletes session ${name}, ${why}`);
      const changed = call.resourceVersion !== undefined && call.resourceVersion !== metadata.resourceVersion;
      if (changed) return;
      if (phase !== 'Finished' && phase !== 'Suspended') fail(`which is ${phase}`);
      const age = server.clock.now() - at + CLOCK_MS;
      if (ttl && age < parseDuration(ttl)) fail(`which has been ${phase} for ${age} ms`);
      const seen = reads.of(process, session)?.version ?? Number.POSITIVE_INFINITY;
      for (const { metadata, status } of facts.turnsOf(session.metadata.uid)) {
        if (!isTerminal(status?.phase) && (created.get(metadata.uid) ?? 0) <= seen)
          fail(`and turn ${metadata.name} waits`);
      }
    },
  };
};

/**
 * A blob of an existing session is kept for a minimum time, whether an object names it or not; a state until a minute after
 * a later one was counted; an output, a log and artifacts no longer than the ended turn that named them.
 */
export const keptAWhile: MakeInvariant = (facts) => {
  const counted = new Map<string, { state: StateRef; at: number }[]>();
  /** Keys of what ended turns had stored that were deleted. */
  const dropped = new Set<string>();
  const { clock } = facts.server;
  /** The store has been small: what is removed may have been decided upon before it became larger. */
  let isShort = false;
  return {
    committed({ storage, type, object }) {
      isShort ||= !facts.hasRoom;
      const { uid } = object.metadata;
      if (storage === TURNS && type === 'DELETED') {
        const { phase, outputRef, log, artifacts = [] } = (object as unknown as StoredTurn).status ?? {};
        const refs = [outputRef, log?.ref, ...artifacts.map(({ ref }) => ref)];
        if (isTerminal(phase)) for (const ref of refs) if (ref !== undefined) dropped.add(ref);
      }
      if (storage === SESSIONS && uid) {
        const { state } = (object as unknown as StoredSession).status ?? {};
        const before = counted.get(uid) ?? [];
        if (state && isLater(state, before.at(-1)?.state)) counted.set(uid, [...before, { state, at: clock.now() }]);
      }
      if (storage !== BLOBS || type !== 'DELETED') return;
      const { metadata, spec } = object as unknown as StoredBlob;
      const session = facts.session(spec.sessionUID);
      if (!session || session.metadata.deletionTimestamp) return;
      const entry = spec as unknown as StateRef;
      if (spec.kind !== 'State' && dropped.has(storeKey(spec.sessionUID, entry.incarnation, entry.seq))) return;
      const at = spec.kind === 'State' && counted.get(spec.sessionUID)?.find(({ state }) => isLater(state, entry))?.at;
      const since = at === false || at === undefined ? Date.parse(metadata.creationTimestamp) : at;
      const age = clock.now() - since + (at ? 0 : CLOCK_MS);
      // Where room is short, a state goes as soon as it is superseded.
      if (at && isShort) return;
      if (age < (at ? SUPERSEDED_MS : MIN_AGE_MS))
        facts.fail('kept a while', `${spec.kind} ${metadata.name} was deleted after ${age} ms`);
    },
  };
};
