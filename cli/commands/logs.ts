import { ApiError } from '../../core/kube/errors.ts';
import { type StoredTurn, sessions, turns } from '../../core/resources/kinds.ts';
import { CONTAINER } from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn.ts';
import { delay } from '../../core/runtime.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { type Cluster, withCluster } from '../cluster.ts';
import { failed, refused } from '../errors.ts';
import { follow } from '../follow.ts';
import { ReadableText } from '../readable.ts';
import { getSession, getTurn, logOf, turnsOf } from '../stored.ts';

export interface LogsFlags extends ClusterFlags {
  turn?: string;
  follow?: boolean;
}

/** The log of a pod that has just started is not to be had yet, milliseconds. */
const RETRY_MS = 250;
/** What was printed just before a turn's end may still be on its way, milliseconds. */
const LAST_LINES_MS = 300;

/** What a turn's agent printed beside its result: of the turn named, or the newest. With `follow` live. */
export async function logs(name: string, flags: LogsFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    const own = await turnsOf(cluster, session, cli.interrupted);
    const turn = flags.turn
      ? own.find(({ metadata }) => metadata.name === flags.turn)
      : own.findLast(({ status }) => status?.phase !== undefined && status.phase !== 'Queued');
    if (flags.turn && !turn) throw refused(`session ${name} has no turn "${flags.turn}"`);
    if (!flags.follow) {
      if (!turn) cli.say(`no turn of session ${name} has run yet`);
      else await printLog(turn, cluster, cli);
      return 0;
    }
    if (turn && flags.turn) {
      if (isTerminal(turn.status?.phase)) await printLog(turn, cluster, cli);
      else await followTurn(turn, cluster, cli);
      return 0;
    }
    if (turn && session.status?.phase === 'Finished') await printLog(turn, cluster, cli);
    else await followPods(name, session.metadata.uid, startOf(turn), cluster, cli, cli.interrupted);
    return 0;
  });
}

async function printLog(turn: StoredTurn, cluster: Cluster, cli: Cli): Promise<void> {
  if (isTerminal(turn.status?.phase)) {
    const text = await logOf(turn, cluster.api, cli.interrupted);
    if (text === '') cli.say(`turn ${turn.metadata.name} printed nothing beside its result`);
    else await cli.out(text.endsWith('\n') ? text : `${text}\n`);
    return;
  }
  const session = await getSession(cluster, turn.spec.session, cli.interrupted);
  const { podName } = session.status ?? {};
  if (podName) await printPodLog(podName, { follow: false, ...startOf(turn) }, cluster, cli, cli.interrupted);
}

/** Until the turn ends. */
async function followTurn(turn: StoredTurn, cluster: Cluster, cli: Cli): Promise<void> {
  const { name, uid } = turn.metadata;
  const ended = new AbortController();
  const signal = AbortSignal.any([cli.interrupted, ended.signal]);
  const session = await getSession(cluster, turn.spec.session, signal);
  const printing = followPods(turn.spec.session, session.metadata.uid, startOf(turn), cluster, cli, signal).catch(
    (error) => {
      if (!ended.signal.aborted) throw error;
    },
  );
  const watching = (async () => {
    const ref = { namespace: cluster.namespace, name };
    for await (const now of follow(cluster.api, turns, ref, { clock: cli.clock, signal: cli.interrupted })) {
      if (now?.metadata.uid !== uid) throw failed(`turn ${name} was deleted`);
      if (isTerminal(now.status?.phase)) break;
    }
    await delay(cli.clock, LAST_LINES_MS, cli.interrupted);
    ended.abort();
  })();
  await Promise.all([watching, printing]);
  const { status } = await getTurn(cluster, name, cli.interrupted);
  cli.say(`turn ${name} ${status?.phase}`);
}

/** The text of the session's pods, one after the other, until the session is finished or deleted. */
async function followPods(
  name: string,
  uid: string,
  since: { sinceTime?: string },
  cluster: Cluster,
  cli: Cli,
  signal: AbortSignal,
): Promise<void> {
  const ref = { namespace: cluster.namespace, name };
  let printed: string | undefined;
  for await (const session of follow(cluster.api, sessions, ref, { clock: cli.clock, signal })) {
    if (session?.metadata.uid !== uid || session.status?.phase === 'Finished') return;
    const { podName } = session.status ?? {};
    if (!podName || podName === printed) continue;
    // Of the first pod what the turn under way printed so far, of later ones everything.
    const from = printed === undefined ? since : {};
    printed = podName;
    await printPodLog(podName, { follow: true, ...from }, cluster, cli, signal);
  }
}

/** Until the pod's log ends; a pod that is gone has none. */
async function printPodLog(
  name: string,
  options: { follow: boolean; sinceTime?: string },
  { api, namespace }: Cluster,
  cli: Cli,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const text = new ReadableText();
    try {
      for await (const chunk of api.podLog({ namespace, name }, { container: CONTAINER, ...options, signal })) {
        const readable = text.push(chunk);
        if (readable) await cli.out(readable);
      }
      await cli.out(text.end());
      return;
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== 400 && error.code !== 404)) throw error;
      if (error.code === 404 || !options.follow) return;
    }
    await delay(cli.clock, RETRY_MS, signal);
  }
}

/** When the turn was begun, as far as known: from then on the pod's log is this turn's. */
function startOf(turn: StoredTurn | undefined): { sinceTime?: string } {
  const running = turn?.status?.conditions?.find(({ type }) => type === 'Running');
  const at = turn?.status?.startedAt ?? running?.lastTransitionTime;
  return at && !isTerminal(turn?.status?.phase) ? { sinceTime: at } : {};
}
