import { cannotUseSlot } from '../../../controller/observed/own-turns.ts';
import { approvals, type StoredSession, type StoredTurn } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { LiveReads, ofSuspension } from './live-reads.ts';
import { suspendedBy } from './suspended.ts';

/** A delete names its object by uid, so that a later object of the same name is spared. */
export const byUID: MakeInvariant = (facts) => ({
  called({ verb, resource, name, uid, process }) {
    if (verb === 'delete' && uid === undefined)
      facts.fail('by uid', `${process} deletes ${resource}/${name}, whichever object has that name by now`);
  },
});

/** The last span of versions for which something held of a turn. */
class Spans {
  readonly #spans = new Map<string, { session: string | undefined; from: number; until: number }>();

  note(turn: StoredTurn, holds: boolean, version: number): void {
    const { uid } = turn.metadata;
    const was = this.#spans.get(uid);
    if (holds && was?.until !== Number.POSITIVE_INFINITY)
      this.#spans.set(uid, { session: ownerOf(turn), from: version, until: Number.POSITIVE_INFINITY });
    else if (!holds && was?.until === Number.POSITIVE_INFINITY) was.until = version;
  }

  /** Reports whether it held of a turn of the session at this version. */
  held(session: string, version: number): boolean {
    return [...this.#spans.values()].some((it) => it.session === session && it.from <= version && version < it.until);
  }
}

/** Time for which a decision may be carried out, with the writes to turns that come before a pod is deleted. */
const ACTING_MS = 5_000;

/** Codes of a turn that was lost with its pod. */
const LOSSES: ReadonlySet<string> = new Set(['PodLost', 'StartFailed']);

/**
 * A pod that is given up to suspend its session takes no running turn with it. A suspension that neither `spec.suspend` nor
 * a restart demands also spares a turn whose request is decided, and waiting turns, except those behind a turn that asks,
 * those of a session whose next turn is shown to wait for its concurrency group, and those of a runner that is not
 * understood.
 */
export const spared: MakeInvariant = (facts) => {
  const reads = new LiveReads(facts, ofSuspension);
  const created = new Map<string, number>();
  const reclaimed = new Set<string>();
  const asked = new Spans();
  const limited = new Spans();
  /** Session uid → when `spec.suspend` was set last, virtual milliseconds. */
  const heldAt = new Map<string, number>();
  const { server } = facts;

  /** Fails when the turn was lost with a pod that was given up. */
  const lost = (turn: StoredTurn) => {
    const { metadata, status } = turn;
    const { podUID = '', incarnation = 0, error } = status ?? {};
    if (!reclaimed.has(podUID) || !LOSSES.has(error?.code ?? '')) return;
    // The turn may have waited on, and a later pod could not start.
    const later = facts.sessions.get(ownerOf(turn) ?? '')?.status?.incarnation ?? 0;
    if (error?.code === 'StartFailed' && later > incarnation) return;
    facts.fail(
      'spared',
      `turn ${metadata.name} was lost with pod ${podUID}, which was given up to suspend its session`,
    );
  };

  const isDecidedBy = (turn: StoredTurn, version: number) =>
    server.list(approvals).some(({ metadata, spec }) => {
      const isFor = metadata.namespace === turn.metadata.namespace && spec.turn === turn.metadata.name;
      return isFor && spec.requestId === turn.status?.approval?.id && (created.get(metadata.uid) ?? 0) <= version;
    });

  return {
    committed({ storage, type, object, version }) {
      const { uid = '' } = object.metadata;
      if (type === 'ADDED') created.set(uid, version);
      if (storage === SESSIONS) {
        if ((object as unknown as StoredSession).spec.suspend) heldAt.set(uid, Number.POSITIVE_INFINITY);
        else if (heldAt.get(uid) === Number.POSITIVE_INFINITY) heldAt.set(uid, facts.kubelets.now);
      }
      if (storage !== TURNS) return;
      const turn = object as unknown as StoredTurn;
      lost(turn);
      const isThere = type !== 'DELETED';
      asked.note(turn, isThere && turn.status?.phase === 'AwaitingApproval', version);
      limited.note(turn, isThere && cannotUseSlot(turn), version);
    },
    called(call) {
      reads.called(call);
      const { name, process } = call;
      const { session, pod } = suspendedBy(call, facts) ?? {};
      if (!session || !pod) return;
      reclaimed.add(pod.metadata.uid);
      const read = reads.of(process, session);
      const seen = read?.version ?? Number.POSITIVE_INFINITY;
      // Turns that wait while a session restarts run in its next pod.
      const wasHeld = facts.kubelets.now - (heldAt.get(session.metadata.uid) ?? Number.NEGATIVE_INFINITY) <= ACTING_MS;
      const held = read?.held || wasHeld || facts.isToRestart(session);
      const live = facts.turnsOf(session.metadata.uid).filter(({ status }) => !isTerminal(status?.phase));
      const asking = live.find(({ status }) => status?.phase === 'AwaitingApproval');
      const { uid } = session.metadata;
      const mayWait = asking || asked.held(uid, seen) || limited.held(uid, seen);
      const fail = (why: string) => facts.fail('spared', `${name} is suspended by ${process} although ${why}`);
      for (const turn of live) {
        const { metadata, status } = turn;
        if (status?.phase === 'Running' && status.podUID === pod.metadata.uid) fail(`turn ${metadata.name} runs in it`);
        // Turns that wait run in the next pod, whose runner is understood.
        if (facts.isOutdated(process, pod.metadata.uid)) continue;
        if (held || (created.get(metadata.uid) ?? 0) > seen) continue;
        if (turn === asking && isDecidedBy(turn, seen)) fail(`the request of turn ${metadata.name} is decided on`);
        if (!mayWait) fail(`turn ${metadata.name} waits`);
      }
    },
  };
};
