import { filesDigest } from '../../../controller/observed/agent-files.ts';
import { configMaps } from '../../../core/kube/resources.ts';
import { parseDuration } from '../../../core/resources/duration.ts';
import { type StoredTurn, sessions } from '../../../core/resources/kinds.ts';
import { LABEL_AGENT_FILES } from '../../../core/resources/names.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { storageOf } from '../api/server.ts';
import { holding } from '../users/files.ts';
import { CLOCK_MS } from './clocks.ts';
import { TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { Pasts } from './past.ts';

const CONFIG_MAPS = storageOf(configMaps);

/** An agent runs with the files that its incarnation's status records, one digest for each ConfigMap of the spec. */
export const recordedFiles: MakeInvariant = (facts) => ({
  runStarted({ sessionUID, incarnation, podUID, files, isRunnerless }) {
    const session = facts.session(sessionUID);
    if (!session || isRunnerless || session.status?.incarnation !== incarnation) return;
    const { spec, status, metadata } = session;
    const given = files.map((content) => filesDigest(holding(content)));
    const recorded = spec.agent?.files?.map(
      ({ configMap }) => status?.agentFiles?.find((one) => one.configMap === configMap)?.digest,
    );
    if (JSON.stringify(given) === JSON.stringify(recorded ?? [])) return;
    facts.fail(
      'recorded files',
      `the agent of session ${metadata.name} in pod ${podUID} has ${files.join(' ') || 'no files'}, of digests ${given}; recorded are ${recorded}`,
    );
  },
});

/** A turn ends with AgentFilesMissing only where files were missing, and not before `timeouts.start`. */
export const awaitedFiles: MakeInvariant = (facts) => {
  const there = new Pasts<boolean>();
  return {
    committed(change) {
      const { storage, type, object, previous } = change;
      const { namespace, name, labels } = object.metadata;
      if (storage === CONFIG_MAPS) {
        const key = `${namespace}/${name}`;
        if (type === 'ADDED' && there.since(key, 0).length === 0) there.becomes(key, false, 0);
        there.becomes(key, type !== 'DELETED' && labels?.[LABEL_AGENT_FILES] === 'true', facts.kubelets.now);
      }
      if (storage !== TURNS || type !== 'MODIFIED') return;
      const turn = object as unknown as StoredTurn;
      const was = (previous as unknown as StoredTurn | undefined)?.status;
      if (turn.status?.error?.code !== 'AgentFilesMissing' || isTerminal(was?.phase)) return;
      const age = facts.server.clock.now() - Date.parse(turn.metadata.creationTimestamp);
      const session = facts.server.get(sessions, namespace, turn.spec.session);
      const start = parseDuration(turn.status.granted?.start ?? session?.spec.timeouts?.start ?? '10m');
      if (age + CLOCK_MS < start)
        facts.fail('awaited files', `turn ${name} has waited ${age} of ${start} ms for files`);
      const call = facts.callBehind(change);
      const knewUntil = call ? facts.knewUntil(call, ['configmaps']) : Number.POSITIVE_INFINITY;
      const since = Math.min(facts.kubelets.now - age - CLOCK_MS, knewUntil);
      const isMissing = (configMap: string) => {
        const past = there.since(`${namespace}/${configMap}`, since);
        return past.length === 0 || past.includes(false);
      };
      if (!session?.spec.agent?.files?.some(({ configMap = '' }) => isMissing(configMap)))
        facts.fail('awaited files', `turn ${name} ended for want of files, and all of them were there`);
    },
  };
};
