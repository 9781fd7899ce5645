import type { StoredTurn } from '../../../core/resources/kinds.ts';
import type { Run } from '../cluster/agent.ts';
import { TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Reason that a controller logs when it deletes a pod because its runner works on a deleted turn. */
const FOR_WORK = 'it works on a turn that is gone';

/**
 * No pod is given up for work that its runner does not have. A controller knows that a run is over once it has received
 * what the runner said after the run's end: an answer to a ping, or any message once the run's result is acknowledged.
 * A message behind a gap in the numbers says nothing: it is asked for again. Nor does one from before the pod was given its
 * last turn, which the runner may have begun by now.
 */
export const givenUpForWork: MakeInvariant = (facts) => {
  /** Pod and process → the time at which the runner first wrote the latest frames that have arrived, virtual milliseconds. */
  const heard = new Map<string, { message: number; pong: number }>();
  /** Pod and process → the number of the frame that is due. */
  const next = new Map<string, number>();
  const acknowledged = new Set<Run>();
  /** Pod → the time at which a turn was last written Running for it, virtual milliseconds. */
  const givenAt = new Map<string, number>();
  return {
    committed({ storage, object }) {
      const { phase, podUID } = (object as unknown as StoredTurn).status ?? {};
      if (storage === TURNS && phase === 'Running' && podUID) givenAt.set(podUID, facts.kubelets.now);
    },
    heard({ podUID }, { process, frames }) {
      const key = `${podUID} ${process}`;
      const inOrder = frames.filter(({ seq, kind }) => {
        const due = next.get(key) ?? seq;
        const counts = seq === due || (kind === 'dropped' && seq > due);
        if (counts) next.set(key, seq + 1);
        return counts;
      });
      if (inOrder.length === 0) return;
      const before = heard.get(key) ?? { message: 0, pong: 0 };
      const pongs = inOrder.filter(({ kind }) => kind === 'pong');
      heard.set(key, {
        message: Math.max(before.message, ...inOrder.map(({ printedAt }) => printedAt)),
        pong: Math.max(before.pong, ...pongs.map(({ printedAt }) => printedAt)),
      });
    },
    acknowledged({ kind, run }) {
      if (kind === 'result') acknowledged.add(run);
    },
    gaveUp({ process, podUID, why }) {
      if (why !== FOR_WORK) return;
      const last = [...facts.runs.values()]
        .flat()
        .filter((run) => run.podUID === podUID)
        .sort((a, b) => b.startedAt - a.startedAt)[0];
      const { message, pong } = heard.get(`${podUID} ${process}`) ?? { message: 0, pong: 0 };
      const known = Math.max(last?.end?.at ?? 0, givenAt.get(podUID) ?? 0);
      if (last?.end && known < (acknowledged.has(last) ? message : pong))
        facts.fail('given up for work', `pod ${podUID}: "${why}", and its last run ended at ${last.end.at} ms`);
    },
  };
};

/** Reason that a controller logs when it deletes a pod because its runner is silent. */
const FOR_SILENCE = 'its runner does not answer';
/** Time for which a runner that is given up for its silence has said nothing; half of what a controller waits. */
const SILENT_MS = 15_000;

/**
 * No pod is given up for its silence whose runner has told the controller anything within the time that it has to answer. A
 * runner of which nothing but the clear `ready` comes does not answer: what is asked after it is owed all the same.
 */
export const givenUpForSilence: MakeInvariant = (facts) => {
  /** Pod and process → the time of the runner's last frame, virtual milliseconds. */
  const heard = new Map<string, number>();
  return {
    heard({ podUID }, { process, frames }) {
      if (frames.some(({ kind }) => kind !== 'ready')) heard.set(`${podUID} ${process}`, facts.kubelets.now);
    },
    gaveUp({ process, podUID, why }) {
      if (why !== FOR_SILENCE) return;
      const ago = facts.kubelets.now - (heard.get(`${podUID} ${process}`) ?? Number.NEGATIVE_INFINITY);
      if (ago < SILENT_MS)
        facts.fail(
          'given up for silence',
          `pod ${podUID}: "${why}", and its runner told ${process} something ${ago} ms ago`,
        );
    },
  };
};
