import { ownLines } from '../../core/follow/pod-lines.ts';
import { namespaceEvents, type Placed, sessionEvents } from '../../core/follow/session-events.ts';
import { States } from '../../core/follow/states.ts';
import { type StoredSession, sessions, turns } from '../../core/resources/kinds.ts';
import { silentLogger } from '../../core/system.ts';
import type { Cli } from '../cli.ts';
import type { KubeCluster } from '../cluster/cluster.ts';

/** Yields what happens to the session until it is deleted or the signal aborts. */
export async function* followSession(
  { metadata: { name, uid, resourceVersion } }: StoredSession,
  { api, namespace }: KubeCluster,
  cli: Cli,
  { logs, signal }: { logs: boolean; signal: AbortSignal },
): AsyncGenerator<Placed> {
  yield* withStates({ api, namespace, session: name }, cli, (states) =>
    sessionEvents(
      { clock: cli.clock, states, read: ownLines(api, cli.clock) },
      { namespace, name, uid, resourceVersion, logs, signal },
    ),
  );
}

/** Yields what happens to the sessions and turns of the namespace until the signal aborts. */
export async function* followNamespace(cluster: KubeCluster, cli: Cli, signal: AbortSignal): AsyncGenerator<Placed> {
  yield* withStates(cluster, cli, (states) => namespaceEvents(states, { signal }));
}

/** Yields what `follow` makes of the states of a session with its turns, or of a whole namespace. */
async function* withStates(
  { api, namespace, session }: Pick<KubeCluster, 'api' | 'namespace'> & { session?: string },
  cli: Cli,
  follow: (states: States) => AsyncGenerator<Placed>,
): AsyncGenerator<Placed> {
  // A missing right is reported at once; the watches would wait for it.
  const options = { namespace, limit: 1, signal: cli.interrupted };
  await Promise.all([api.list(sessions, options), api.list(turns, options)]);
  const { clock, random } = cli;
  const scope = session === undefined ? { namespace } : { namespace, session };
  const states = new States({ api, clock, random, log: silentLogger, ...scope });
  try {
    yield* follow(states);
  } finally {
    await states.stop();
  }
}
