import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import { CallTimes } from './call-times.ts';
import { ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/**
 * No turn is written Running for a runner whose protocol its controller does not understand, once it has heard from that
 * runner or knows that another has bound it. Excepted are sessions that keep no state, and those whose state could not be
 * stored when they were to be suspended. A world with such a runner is not at rest.
 */
export const understood: MakeInvariant = (facts) => {
  /** Pod and process → the time of the first frame of that runner, virtual milliseconds. */
  const heard = new Map<string, number>();
  /** Pod → the time at which a status first said that its runner is bound, virtual milliseconds. */
  const ready = new Map<string, number>();
  const calls = new CallTimes(facts);

  return {
    sent: (call) => calls.sent(call),
    answered: (call) => calls.answered(call),
    heard({ podUID }, { process, frames }) {
      const key = `${podUID} ${process}`;
      if (frames.length > 0 && !heard.has(key)) heard.set(key, facts.kubelets.now);
    },
    committed(change) {
      const { storage, type, object, previous } = change;
      if (storage === SESSIONS) {
        const { podUID, conditions } = (object as unknown as StoredSession).status ?? {};
        const isReady = conditions?.some((one) => one.type === 'Ready' && one.status === 'True');
        if (podUID && isReady && !ready.has(podUID)) ready.set(podUID, facts.kubelets.now);
      }
      if (storage !== TURNS || type !== 'MODIFIED') return;
      const turn = object as unknown as StoredTurn;
      const was = (previous as unknown as StoredTurn | undefined)?.status;
      const { phase, podUID = '' } = turn.status ?? {};
      const call = facts.callBehind(change);
      if (phase !== 'Running' || was?.phase === 'Running' || !call || !facts.isOutdated(call.process, podUID)) return;
      const session = facts.sessions.get(ownerOf(turn) ?? '');
      if (!session || facts.mayKeepOutdated(session)) return;
      const { now } = facts.kubelets;
      const heardAt = heard.get(`${podUID} ${call.process}`) ?? now;
      const readyAt = ready.get(podUID) ?? now;
      const hasHeard = now - heardAt > calls.decidedWithin(call, session, heardAt);
      const knows = readyAt < facts.knewUntil(call, ['sessions'], calls.decidedWithin(call, session, readyAt));
      if (hasHeard || knows)
        facts.fail(
          'understood',
          `turn ${turn.metadata.name} is given to pod ${podUID} by ${call.process}, which does not understand its runner`,
        );
    },
  };
};
