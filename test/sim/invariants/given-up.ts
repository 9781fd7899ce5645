import type { MakeInvariant } from './invariant.ts';

/** What a controller says of a pod that it deletes because its runner works on something. */
const FOR_WORK = 'it works on a turn that is gone';

/**
 * No pod is given up for work that its runner does not have. That a run is over a controller knows once it has heard
 * anything that the runner said after the end of it.
 */
export const givenUpForWork: MakeInvariant = (facts) => {
  /** Pod and process → when the last word that has come was said, virtual milliseconds. */
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
