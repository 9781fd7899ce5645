import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { Activity } from './activity.ts';
import { CLOCK_MS } from './clocks.ts';
import { ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/**
 * A session that has given up its pod gets another one only for a turn. A controller that was not told of the deletion of a turn
 * may still start the session for it.
 */
export const wokenByTurns: MakeInvariant = (facts) => {
  /** Session → version of the last deletion of a turn of it. */
  const deletedAt = new Map<string, number>();
  /** Sessions that gave up their pod and have been given no turn since. */
  const asleep = new Set<string>();
  return {
    committed(change) {
      const { storage, type, object, previous, version } = change;
      if (storage === TURNS) {
        const turn = object as unknown as StoredTurn;
        const owner = ownerOf(turn) ?? '';
        if (type === 'DELETED') deletedAt.set(owner, version);
        else if (!isTerminal(turn.status?.phase)) asleep.delete(owner);
      }
      if (storage !== SESSIONS || type !== 'MODIFIED') return;
      const { metadata, status } = object as unknown as StoredSession;
      const was = (previous as unknown as StoredSession | undefined)?.status;
      if (was?.podName && !status?.podName && status?.runnerVersion !== undefined) {
        const live = facts.turnsOf(metadata.uid).some((turn) => !isTerminal(turn.status?.phase));
        if (!live) asleep.add(metadata.uid);
      }
      if (was?.podName || !status?.podName || !asleep.delete(metadata.uid)) return;
      const knew = facts.callBehind(change)?.knew('turns') ?? 0;
      if (knew >= (deletedAt.get(metadata.uid) ?? 0))
        facts.fail('woken by turns', `session ${metadata.name} gets ${status.podName}, and no turn has been given`);
    },
  };
};

/**
 * `status.lastActiveAt` never shows activity that did not happen. A runner reports how long ago the activity was, so
 * the status may be late by the latency of a message that has arrived since, and by the error of a clock.
 */
export const genuine: MakeInvariant = (facts) => {
  const activity = new Activity(facts);
  /** Session → arrival and latency of its runner's messages, without those that were no slower than a later one. */
  const words = new Map<string, { at: number; ms: number }[]>();
  const { bound, runStarted, runEnded, talked, touched } = activity;
  return {
    bound,
    runStarted,
    runEnded,
    talked,
    touched,
    heard({ bind }, { agoMs }) {
      if (!bind) return;
      const before = words.get(bind.session.uid)?.filter(({ ms }) => ms > agoMs) ?? [];
      words.set(bind.session.uid, [...before, { at: facts.kubelets.now, ms: agoMs }]);
    },
    committed(change) {
      activity.committed(change);
      const { storage, type, object, previous } = change;
      if (storage !== SESSIONS || type !== 'MODIFIED') return;
      const { metadata, status } = object as unknown as StoredSession;
      const was = (previous as unknown as StoredSession | undefined)?.status;
      if (!status?.lastActiveAt || was?.lastActiveAt === status.lastActiveAt) return;
      const lived = activity.livedMs(metadata.uid);
      const early = Date.parse(status.lastActiveAt) - (facts.server.clock.now() - lived);
      const latest = words.get(metadata.uid)?.find(({ at }) => at >= facts.kubelets.now - lived);
      if (early > CLOCK_MS + (latest?.ms ?? 0))
        facts.fail('genuine', `session ${metadata.name} was active at ${status.lastActiveAt}, ${early} ms too late`);
    },
  };
};
