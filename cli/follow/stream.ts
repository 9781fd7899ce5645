import { ownLines } from '../../core/follow/pod-lines.ts';
import { namespaceEvents, type Placed, sessionEvents } from '../../core/follow/session-events.ts';
import { States } from '../../core/follow/states.ts';
import { type StoredSession, sessions, turns } from '../../core/resources/kinds.ts';
import { silentLogger } from '../../core/system.ts';
import type { Cli } from '../cli.ts';
import type { KubeCluster } from '../cluster.ts';

/** Interval at which a loss of the cluster is noticed, milliseconds. */
const LOOK_MS = 2_000;

/** Yields what happens to the session until it is deleted or the signal aborts; says when the cluster cannot be reached. */
export async function* followSession(
  { metadata: { name, uid } }: StoredSession,
  { api, namespace }: KubeCluster,
  cli: Cli,
  { logs, signal }: { logs: boolean; signal: AbortSignal },
): AsyncGenerator<Placed> {
  yield* withStates({ api, namespace, session: name }, cli, (states) =>
    sessionEvents({ clock: cli.clock, states, read: ownLines(api, cli.clock) }, { namespace, name, uid, logs, signal }),
  );
}

/** Yields what happens to the sessions and turns of the namespace until the signal aborts; says losses as `followSession`. */
export async function* followNamespace(cluster: KubeCluster, cli: Cli, signal: AbortSignal): AsyncGenerator<Placed> {
  yield* withStates(cluster, cli, (states) => namespaceEvents(states, { signal }));
}

/** Yields what `follow` makes of the states of a session with its turns, or of a whole namespace. */
async function* withStates(
  { api, namespace, session }: Pick<KubeCluster, 'api' | 'namespace'> & { session?: string },
  cli: Cli,
  follow: (states: States) => AsyncGenerator<Placed>,
): AsyncGenerator<Placed> {
  // A missing right is told at once; the watches would wait for it.
  const options = { namespace, limit: 1, signal: cli.interrupted };
  await Promise.all([api.list(sessions, options), api.list(turns, options)]);
  const { clock, random } = cli;
  const scope = session === undefined ? { namespace } : { namespace, session };
  const states = new States({ api, clock, random, log: silentLogger, ...scope });
  const stopLooking = sayLosses(states, cli);
  try {
    yield* follow(states);
  } finally {
    stopLooking();
    await states.stop();
  }
}

function sayLosses(states: States, { clock, say }: Cli): () => void {
  let told: string | undefined;
  let cancel = () => {};
  const look = () => {
    const problem = states.problem?.message;
    if (problem !== undefined && told === undefined) say(`the cluster does not answer, trying again: ${problem}`);
    if (problem === undefined && told !== undefined) say('the cluster answers again');
    told = problem;
    cancel = clock.setTimer(LOOK_MS, look);
  };
  cancel = clock.setTimer(LOOK_MS, look);
  return () => cancel();
}
