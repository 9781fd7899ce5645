import { anySignal } from '../../core/abort.ts';
import { type StoredSession, type StoredTurn, sessions, turns } from '../../core/resources/kinds.ts';
import { isTerminal, type TurnPhase } from '../../core/resources/turn-phases.ts';
import { pause } from '../../core/runtime.ts';
import type { Cli } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { CliError, detached, EXIT, failed } from '../errors.ts';
import { narrate } from '../follow/narration.ts';
import { type Followed, followObject } from '../follow/object.ts';
import { afterTime } from '../follow/words.ts';
import { formatObject } from '../print/print.ts';
import { hanging, printableLine } from '../print/printable.ts';
import { EXPLAIN_AFTER_MS, whyWaiting } from './waiting.ts';

const EXPLAIN_EVERY_MS = 2_000;
/** Time to wait for the end of a cancelled turn, milliseconds. */
const CANCEL_WAIT_MS = 15_000;

/** Waits until the turn has ended. `see` is called with each phase that it is seen in. */
export async function endOfTurn(
  { metadata: { name, uid } }: StoredTurn,
  cluster: Followed,
  { clock }: Pick<Cli, 'clock'>,
  signal: AbortSignal,
  see: (phase: TurnPhase | undefined) => void = () => {},
): Promise<StoredTurn> {
  for await (const now of followObject(cluster, turns, name, { clock, signal })) {
    if (now?.metadata.uid !== uid) throw failed(`turn ${name} was deleted before it ended`);
    see(now.status?.phase);
    if (isTerminal(now.status?.phase)) return now;
  }
  throw new Error('following a turn ended without its end');
}

/**
 * Waits until the turn has ended. Explains on stderr why the turn does not start, once that takes longer than usual, and
 * with `asks` that it waits for a decision.
 */
export async function waitForTurn(
  turn: StoredTurn,
  cluster: Cluster,
  cli: Cli,
  { signal, asks = true }: { signal: AbortSignal; asks?: boolean },
) {
  let phase: TurnPhase | undefined;
  const done = new AbortController();
  const explaining = explainWaiting(turn, cluster, cli, anySignal(signal, done.signal), () => {
    return phase === 'AwaitingApproval' && !asks ? 'Running' : phase;
  });
  try {
    return await endOfTurn(turn, cluster, cli, signal, (now) => {
      phase = now;
    });
  } finally {
    done.abort();
    await explaining;
  }
}

/** Prints each new reason why a turn waits. Errors of its own are ignored, because the wait itself reports them. */
async function explainWaiting(
  turn: StoredTurn,
  cluster: Cluster,
  cli: Cli,
  signal: AbortSignal,
  phase: () => string | undefined,
): Promise<void> {
  let said = '';
  let begun = false;
  let shown = { pod: '', lines: 0 };
  for (let wait = EXPLAIN_AFTER_MS; await pause(cli.clock, wait, signal); wait = EXPLAIN_EVERY_MS) {
    if (phase() !== 'Running') begun = false;
    if (begun) continue;
    try {
      const ref = { namespace: cluster.namespace, name: turn.spec.session };
      const session = await cluster.api.get(sessions, ref, { signal });
      // A turn is Running from the moment it has a pod, which may still wait for its image or for a node.
      begun = phase() === 'Running' && isReady(session);
      if (begun) continue;
      const reason = whyWaiting(session, cli.name);
      if (reason !== said) cli.say(`waiting: ${printableLine(reason)}`);
      said = reason;
      const { environment } = session.spec;
      if (!environment || session.status?.podName) continue;
      const { pod, lines } = await cluster.buildLines(environment.name, signal);
      // A second build of the environment is shown from its first line.
      const from = pod === shown.pod ? shown.lines : 0;
      for (const line of lines.slice(from)) cli.say(`building ${environment.name}: ${line}`);
      if (pod) shown = { pod, lines: lines.length };
    } catch {
      // The next iteration of the loop tries again.
    }
  }
}

const isReady = ({ status }: StoredSession) =>
  status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false;

/** Cancels the turn and waits a while for its end; undefined when it does not end in time. */
export async function cancelTurn(turn: StoredTurn, cluster: Cluster, cli: Cli): Promise<StoredTurn | undefined> {
  const signal = AbortSignal.timeout(CANCEL_WAIT_MS);
  try {
    await cluster.cancelTurn(turn, signal);
    return await waitForTurn(turn, cluster, cli, { signal });
  } catch (error) {
    if (signal.aborted || error instanceof CliError) return undefined;
    throw error;
  }
}

interface FinishOptions {
  /** `name`: the turn's name in place of its output. */
  output?: 'json' | 'yaml' | 'name' | undefined;
  /** False if the turn is deleted afterwards. */
  isKept?: boolean;
  /** On a terminal: say only what keeps the turn from starting. */
  quiet?: boolean | undefined;
}

/**
 * Waits for the turn, and shows on a terminal what happens until its end. Prints the output on stdout: a string as it is,
 * anything else as JSON; the whole Turn with `-o json`. Prints the error on stderr. Returns the exit code. Ctrl-C cancels the
 * turn; the other signals leave it, unless it is deleted afterwards.
 */
export async function finishTurn(
  turn: StoredTurn,
  cluster: Cluster,
  cli: Cli,
  { output, isKept = true, quiet = false }: FinishOptions = {},
): Promise<number> {
  const { name } = turn.metadata;
  const narration = cli.messages && !quiet ? await narrate(turn, cluster, cli) : undefined;
  let ended: StoredTurn;
  try {
    ended = await waitForTurn(turn, cluster, cli, { signal: cli.interrupted, asks: narration === undefined });
    await narration?.finish(ended);
  } catch (error) {
    await narration?.finish(undefined);
    if (!cli.interrupted.aborted) throw error;
    if (isKept && detached(cli.interrupted)) {
      cli.say(`turn ${name} goes on; to wait for it again: ${cli.name} attach ${name}`);
      throw cli.interrupted.reason;
    }
    cli.say(`cancelling turn ${name}`);
    const cancelled = await cancelTurn(turn, cluster, cli);
    if (cancelled?.status?.phase !== 'Succeeded') {
      if (!cancelled) cli.say(`turn ${name} has not ended yet; its cancellation is requested`);
      throw cli.interrupted.reason;
    }
    ended = cancelled;
  }
  await printTurn(ended, cluster, cli, { output, isKept, isNarrated: narration !== undefined });
  const artifacts = ended.status?.artifacts?.length ?? 0;
  if (artifacts > 0 && isKept && cli.messages && !quiet) {
    cli.say(`its artifacts (${artifacts}): ${cli.name} artifacts download ${ended.spec.session} --turn ${name}`);
  }
  return exitCodeOf(ended);
}

function exitCodeOf(turn: StoredTurn): number {
  switch (turn.status?.phase) {
    case 'Succeeded':
      return EXIT.ok;
    case 'TimedOut':
      return EXIT.timedOut;
    default:
      return EXIT.failed;
  }
}

async function printTurn(
  turn: StoredTurn,
  cluster: Cluster,
  cli: Cli,
  { output: format, isKept, isNarrated }: Pick<FinishOptions, 'output' | 'isKept'> & { isNarrated: boolean },
): Promise<void> {
  const signal = AbortSignal.timeout(60_000);
  const { name } = turn.metadata;
  const { phase, error } = turn.status ?? {};
  const value = format === 'name' ? undefined : await cluster.output(turn, signal);
  if (format === 'name') {
    await cli.out(`turn.berth.dev/${name}\n`);
  } else if (format) {
    await cli.out(
      await formatObject(value === undefined ? turn : { ...turn, status: { ...turn.status, output: value } }, format),
    );
  } else if (phase === 'Succeeded' || value !== undefined) {
    await cli.out(asText(value ?? null));
  }
  const end = `turn ${name} ${phase}${isNarrated ? afterTime(turn.status ?? {}) : ''}`;
  if (phase === 'Succeeded') {
    if (isNarrated) cli.say(end);
    return;
  }
  const why = error ? `${error.code}: ${error.message}` : 'without an error message';
  cli.say(hanging(`${end}: ${why}`));
  if (turn.status?.log && isKept) cli.say(`its log: ${cli.name} logs ${turn.spec.session} --turn ${name}`);
}

/** Formats a string as it is, anything else as JSON; ends with a line feed. */
function asText(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.endsWith('\n') ? text : `${text}\n`;
}
