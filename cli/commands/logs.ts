import { anySignal } from '../../core/abort.ts';
import { readable } from '../../core/pod-log/session-text.ts';
import { type StoredSession, type StoredTurn, sessions, turns } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { delay } from '../../core/runtime.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { getSession, getTurn, sessionOrTurn, turnsOf } from '../cluster/stored.ts';
import { withCluster } from '../connect/connect.ts';
import { failed, refused } from '../errors.ts';
import { followObject } from '../follow/object.ts';

export interface LogsFlags extends ClusterFlags {
  turn?: string;
  follow?: boolean;
}

/** Wait for text that was printed just before a turn's end and is still on its way into the log, milliseconds. */
const LAST_LINES_MS = 300;
/** Time without progress after which a follow that lags behind the log is abandoned, milliseconds. */
const BEHIND_MS = 10_000;

/**
 * Prints the readable text of a turn's agent: of the named turn, or of the newest one of the named session. With `follow`
 * the text is live; `-` reads a pod's log from stdin.
 */
export async function logs(named: string, flags: LogsFlags, cli: Cli): Promise<number> {
  if (named === '-') {
    if (flags.turn || flags.follow) throw refused('--turn and --follow need a session’s name instead of -');
    await print(readable(cli.stdin, { hasRunner: true }), cli);
    return 0;
  }
  return withCluster(flags, cli, async (cluster) => {
    const { session, turn: only } = await sessionOrTurn(cluster, named, cli.interrupted);
    const { name } = session.metadata;
    if (only && flags.turn !== undefined && flags.turn !== only.metadata.name) {
      throw refused(`${named} and --turn ${flags.turn} name two turns; leave one of them out`);
    }
    const wanted = flags.turn ?? only?.metadata.name;
    const own = await turnsOf(cluster, session, cli.interrupted);
    const turn = wanted ? own.find(({ metadata }) => metadata.name === wanted) : own.findLast(hasBegun);
    if (wanted && !turn) throw refused(`session ${name} has no turn "${wanted}"`);
    if (!flags.follow) {
      if (!turn) cli.say(`no turn of session ${name} has run yet`);
      else await printLog(turn, cluster, cli);
      return 0;
    }
    if (turn && wanted) {
      if (isTerminal(turn.status?.phase)) await printLog(turn, cluster, cli);
      else await followTurn(turn, cluster, cli);
      return 0;
    }
    if (turn && session.status?.phase === 'Finished') await printLog(turn, cluster, cli);
    else await print(liveText(session, turn, cluster, cli.interrupted), cli);
    return 0;
  });
}

async function printLog(turn: StoredTurn, cluster: Cluster, cli: Cli): Promise<void> {
  if (isTerminal(turn.status?.phase)) {
    const text = await cluster.log(turn, cli.interrupted);
    if (text === '') cli.say(`turn ${turn.metadata.name} printed nothing beside its result`);
    else await cli.out(text.endsWith('\n') ? text : `${text}\n`);
    return;
  }
  if (!hasBegun(turn)) {
    cli.say(`turn ${turn.metadata.name} has not run yet`);
    return;
  }
  const session = await getSession(cluster, turn.spec.session, cli.interrupted);
  await print(cluster.text(session, { follow: false, ...startOf(turn), signal: cli.interrupted }), cli);
}

/** Follows the text of a turn, which may still be queued, until it ends. */
async function followTurn(queued: StoredTurn, cluster: Cluster, cli: Cli): Promise<void> {
  // Until a turn runs, the text in the pod's log is that of the turns before it.
  const turn = await begunTurn(queued, cluster, cli);
  if (isTerminal(turn.status?.phase)) {
    await printLog(turn, cluster, cli);
    return;
  }
  const { name, uid } = turn.metadata;
  const ended = new AbortController();
  const signal = anySignal(cli.interrupted, ended.signal);
  const session = await getSession(cluster, turn.spec.session, signal);
  let printed = 0;
  const counted = async function* (text: AsyncIterable<string>) {
    for await (const piece of text) {
      yield piece;
      printed += piece.length;
    }
  };
  const printing = print(counted(liveText(session, turn, cluster, signal)), cli).catch((error) => {
    if (!ended.signal.aborted) throw error;
  });
  const watching = (async () => {
    for await (const now of followObject(cluster, turns, name, { clock: cli.clock, signal: cli.interrupted })) {
      if (now?.metadata.uid !== uid) throw failed(`turn ${name} was deleted`);
      if (isTerminal(now.status?.phase)) break;
    }
    await delay(cli.clock, LAST_LINES_MS, cli.interrupted);
    // A slow follow ends too, once it has printed all of the log as it is now.
    const length = await textLength(turn, cluster, cli);
    for (let seen = printed, since = cli.clock.monotonic(); printed < length; ) {
      if (printed > seen) [seen, since] = [printed, cli.clock.monotonic()];
      else if (cli.clock.monotonic() - since > BEHIND_MS) break;
      await delay(cli.clock, 20, cli.interrupted);
    }
    ended.abort();
  })();
  await Promise.all([watching, printing]);
  const { status } = await getTurn(cluster, name, cli.interrupted);
  cli.say(`turn ${name} ${status?.phase}`);
}

/** Waits until the turn is no longer queued, or has ended. */
async function begunTurn({ metadata: { name, uid } }: StoredTurn, cluster: Cluster, cli: Cli): Promise<StoredTurn> {
  for await (const now of followObject(cluster, turns, name, { clock: cli.clock, signal: cli.interrupted })) {
    if (now?.metadata.uid !== uid) throw failed(`turn ${name} was deleted`);
    if (hasBegun(now)) return now;
  }
  throw new Error('following a turn ended without its beginning');
}

/** Returns the length of the text that the turn's pod has written so far; 0 once the log is gone or not available. */
async function textLength(turn: StoredTurn, cluster: Cluster, cli: Cli): Promise<number> {
  let length = 0;
  try {
    const { api, namespace } = cluster;
    const signal = cli.interrupted;
    const session = await api.get(sessions, { namespace, name: turn.spec.session }, { signal });
    const text = cluster.text(session, { follow: false, ...startOf(turn), signal });
    for await (const piece of text) length += piece.length;
  } catch (error) {
    if (cli.interrupted.aborted) throw error;
  }
  return length;
}

/** Follows the text from the beginning of the turn, or of the session. */
function liveText(
  session: StoredSession,
  turn: StoredTurn | undefined,
  cluster: Cluster,
  signal: AbortSignal,
): AsyncIterable<string> {
  const either = anySignal(signal, cluster.outages.over);
  return cluster.text(session, { follow: true, ...startOf(turn), signal: either });
}

async function print(text: AsyncIterable<string>, cli: Cli): Promise<void> {
  for await (const piece of text) await cli.out(piece);
}

const hasBegun = ({ status }: StoredTurn) => status?.phase !== undefined && status.phase !== 'Queued';

/** Returns the start time of the turn, as far as known: from then on the pod's log belongs to this turn. */
function startOf(turn: StoredTurn | undefined): { sinceTime?: string } {
  const running = turn?.status?.conditions?.find(({ type }) => type === 'Running');
  const at = turn?.status?.startedAt ?? running?.lastTransitionTime;
  return at && !isTerminal(turn?.status?.phase) ? { sinceTime: at } : {};
}
