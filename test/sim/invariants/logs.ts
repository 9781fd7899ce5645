import type { StoredTurn } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { type Run, sendsResult } from '../cluster/agent.ts';
import { type Facts, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Codes of a turn whose result arrived and could not be committed as the agent sent it. */
const OF_RESULT: ReadonlySet<string> = new Set([
  'StateTooLarge',
  'StateNotStored',
  'ArtifactsNotStored',
  'StoreFull',
  'ResultRejected',
]);

/** The log of a turn with a result holds what its agent printed, or says what was lost. */
export const logKept: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage !== TURNS || type !== 'MODIFIED') return;
    const turn = object as unknown as StoredTurn;
    const was = (previous as unknown as StoredTurn | undefined)?.status;
    const { phase, podUID, attempt, error } = turn.status ?? {};
    if (!isTerminal(phase) || isTerminal(was?.phase)) return;
    const run = facts.runs.get(turn.metadata.uid)?.findLast((one) => one.podUID === podUID && one.attempt === attempt);
    if (!run?.end || run.end.outcome === 'Asked' || !run.printed) return;
    // What could not be stored is of a request where the runner sent no result.
    const isOfResult = error && OF_RESULT.has(error.code) && sendsResult(run);
    // An end that the runner did not report says nothing about the agent's log. PodLost means that the log is unknown.
    if (error && (error.code === 'PodLost' || !isOwnWord(run, error)) && !isOfResult) return;
    const isHardToRead = facts.kubelets.container(run.podUID)?.isHardToRead;
    const isIncomplete = error?.code === 'StateNotStored' || error?.code === 'ArtifactsNotStored';
    if (isHardToRead && (run.isRunnerless || isIncomplete)) return;
    // The log was rotated away, and the turn says that it is lost.
    const { log } = turn.status ?? {};
    if (isHardToRead && log?.truncated && log.inline === undefined && log.ref === undefined) return;
    const problem = missing(facts, turn, run);
    if (problem) facts.fail('log kept', `turn ${turn.metadata.name} ended ${phase}, and ${problem}`);
  },
});

/** Reports whether the error came from the runner. The controller uses the same codes for turns that it ends itself. */
function isOwnWord({ end, isRunnerless }: Run, { code, message }: { code: string; message: string }): boolean {
  return code === end?.code && (isRunnerless || message === end.message);
}

function missing(facts: Facts, { metadata, status }: StoredTurn, { printed, startedAt }: Run): string | undefined {
  const { log } = status ?? {};
  if (!log) return `nothing says what became of the ${printed.length} bytes that it printed`;
  if (log.bytes < printed.length) return `its log says ${log.bytes} of ${printed.length} bytes`;
  if (log.inline === undefined && log.ref === undefined) {
    if (!log.truncated) return 'its log is lost and does not say so';
    return facts.couldNotStore(startedAt) ? undefined : 'its log is lost, and the store took everything';
  }
  const stored = log.ref === undefined ? undefined : facts.stored(metadata.namespace, log.ref);
  if (stored && 'problem' in stored) return `its log ${log.ref} cannot be read: ${stored.problem}`;
  const text = stored ? stored.data.toString() : (log.inline ?? '');
  if (!text.includes(printed)) return 'its log is another one';
  return Buffer.byteLength(text) < log.bytes && !log.truncated ? 'its log says too many bytes' : undefined;
}
