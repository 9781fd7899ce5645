import type { MakeInvariant } from './invariant.ts';

/** Reason that a controller logs when it deletes a pod because its runner works on a deleted turn. */
const FOR_WORK = 'it works on a turn that is gone';

/**
 * No pod is given up for work that its runner does not have. A controller knows that a run is over once it has received
 * any message that the runner sent after the run's end.
 */
export const givenUpForWork: MakeInvariant = (facts) => {
  /** Pod and process → the time at which the runner sent its latest message that has arrived, virtual milliseconds. */
  const heard = new Map<string, number>();
  return {
    heard({ podUID }, { process, agoMs }) {
      const key = `${podUID} ${process}`;
      heard.set(key, Math.max(heard.get(key) ?? 0, facts.kubelets.now - agoMs));
    },
    gaveUp({ process, podUID, why }) {
      if (why !== FOR_WORK) return;
      const last = [...facts.runs.values()]
        .flat()
        .filter((run) => run.podUID === podUID)
        .sort((a, b) => b.startedAt - a.startedAt)[0];
      if (last?.end && last.end.at < (heard.get(`${podUID} ${process}`) ?? 0))
        facts.fail('given up for work', `pod ${podUID}: "${why}", and its last run ended at ${last.end.at} ms`);
    },
  };
};
