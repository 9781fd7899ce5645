import { digestOf } from '../../../core/artifacts/packed.ts';
import type { StoredTurn } from '../../../core/resources/kinds.ts';
import type { Artifact } from '../../../core/resources/turn.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import type { Run } from '../cluster/agent.ts';
import { type Facts, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/**
 * A turn shows the files that its agent left in the pod, and no others; they can be read from the moment at which the turn has
 * ended. All of them are there where the turn succeeded, or where it failed as its agent did.
 */
export const hasItsArtifacts: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage !== TURNS || type !== 'MODIFIED') return;
    const turn = object as unknown as StoredTurn;
    const was = (previous as unknown as StoredTurn | undefined)?.status;
    const { phase, podUID, attempt, artifacts = [] } = turn.status ?? {};
    if (!isTerminal(phase) || isTerminal(was?.phase)) return;
    const fail = (why: string) => facts.fail('has its artifacts', `turn ${turn.metadata.name} is ${phase}, and ${why}`);
    const legs =
      facts.runs.get(turn.metadata.uid)?.filter((one) => one.podUID === podUID && one.attempt === attempt) ?? [];
    const left = new Map(legs.flatMap((leg) => [...leg.left]));
    for (const artifact of artifacts) {
      const problem = wrong(facts, turn.metadata.namespace, artifact, left);
      if (problem) fail(`artifact ${artifact.name} ${problem}`);
    }
    const run = legs.at(-1);
    if (artifacts.length === left.size || !run || !isOwnEnd(turn, run)) return;
    if (phase !== 'Succeeded' && mayLack(facts, run)) return;
    fail(`shows ${artifacts.length} of the ${left.size} artifacts that its agent has left`);
  },
});

function wrong(
  facts: Facts,
  namespace: string,
  artifact: Artifact,
  left: ReadonlyMap<string, string>,
): string | undefined {
  const { name, digest, ref, offset, bytes } = artifact;
  if (left.get(name) !== digest) return 'is none that its agent has left';
  const stored = facts.stored(namespace, ref);
  if ('problem' in stored) return `cannot be read: ${stored.problem}`;
  return digestOf(stored.data.subarray(offset, offset + bytes)) === digest ? undefined : 'has other content';
}

/** Reports whether the turn shows the end of its run, and not another reason that somebody else had. */
function isOwnEnd({ status }: StoredTurn, { end }: Run): boolean {
  const { phase, error } = status ?? {};
  return end !== undefined && end.outcome === phase && end.code === error?.code && end.message === error?.message;
}

function mayLack(facts: Facts, run: Run): boolean {
  return facts.couldNotStore(run.startedAt) || facts.kubelets.container(run.podUID)?.isHardToRead === true;
}
