import { ifThere, isAlreadyExists, isConflict } from '../../core/kube/errors.ts';
import { type StoredSession, type StoredTurn, sessionOwner, sessions, turns } from '../../core/resources/kinds.ts';
import { firstTurnName, LABEL_MAP } from '../../core/resources/names.ts';
import { delay } from '../../core/runtime.ts';
import type { Cli } from '../cli.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { createSession, createTurn, type GivenTurn, turnSpec } from '../create/create.ts';
import type { SpecWithEnvironment } from '../create/new-objects.ts';
import { refused } from '../errors.ts';
import type { Item } from './items.ts';

/** A session of a map. */
export interface Task extends Item {
  name: string;
}

/** Settings that all sessions of a map share. */
export interface SharedSettings extends SpecWithEnvironment {
  map: string;
  flags: Omit<GivenTurn, 'input'> & { label?: Record<string, string> };
}

interface Begun {
  turn: StoredTurn;
  /** UID of the session; empty where it is not known. */
  uid: string;
}

/** Time that another process is given to create the turn of a session that it has created, and the pause between looks, milliseconds. */
const TURN_MS = 5_000;
const LOOK_MS = 250;
/** Tries to create a session whose name is taken each time by something that is gone a moment later. */
const MAX_TRIES = 10;

/**
 * Creates a session with its turn. What is left of an earlier one, which has failed (`before`) or has no turn, is deleted
 * first. A turn that another process has begun since is waited for: no process deletes the turn of another.
 */
export async function begin(
  { name, input }: Task,
  before: StoredTurn | undefined,
  { spec, map, flags }: SharedSettings,
  cluster: KubeCluster,
  cli: Cli,
): Promise<Begun> {
  const metadata = { labels: { ...flags.label, [LABEL_MAP]: map } };
  const settings = turnSpec({ input, timeout: flags.timeout, attempts: flags.attempts });
  for (let tries = 1; ; tries++) {
    try {
      return await createSession({ name, metadata, spec }, cluster, cli, async (session) => ({
        uid: session.metadata.uid,
        turn: await createTurn({ name: firstTurnName(name), metadata, spec: settings }, session, cluster, cli),
      }));
    } catch (error) {
      if (!isAlreadyExists(error) || tries === MAX_TRIES) throw error;
      const begun = await begunElsewhere(name, before, map, cluster, cli);
      if (begun) return begun;
      if (tries > 1) await delay(cli.clock, LOOK_MS, cli.interrupted);
    }
  }
}

/**
 * Returns the turn of this name that another process has begun; otherwise deletes an earlier one, unless it has
 * changed since. Refuses a name that belongs to something else.
 */
async function begunElsewhere(
  name: string,
  before: StoredTurn | undefined,
  map: string,
  cluster: KubeCluster,
  cli: Cli,
): Promise<Begun | undefined> {
  const { api } = cluster;
  const signal = cli.interrupted;
  const { session, turn } = await settled(name, cluster, cli);
  const foreign = [session, turn].find((found) => found && found.metadata.labels?.[LABEL_MAP] !== map);
  if (foreign) {
    const what = `${foreign.kind?.toLowerCase()} ${foreign.metadata.name}`;
    throw refused(`${what} exists and is not of this map; delete it, or choose another --name`);
  }
  if (session && turn && turn.metadata.uid !== before?.metadata.uid) {
    return { turn, uid: sessionOwner(turn.metadata)?.uid ?? session.metadata.uid };
  }
  try {
    if (session) {
      // The version is that of the session without a turn that counts: a turn that was begun since has changed it.
      const { uid, resourceVersion } = session.metadata;
      await ifThere(api.delete(sessions, session.metadata, { uid, resourceVersion, signal }));
    }
    // The garbage collector would delete it a moment later than the next one is created.
    if (turn) await ifThere(api.delete(turns, turn.metadata, { uid: turn.metadata.uid, signal }));
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
  return undefined;
}

/** Returns the session and its turn. A session is created before its turn: one without a turn is given time. */
async function settled(
  name: string,
  { api, namespace }: KubeCluster,
  { clock, interrupted: signal }: Cli,
): Promise<{ session: StoredSession | undefined; turn: StoredTurn | undefined }> {
  const end = clock.monotonic() + TURN_MS;
  for (;;) {
    const session = await ifThere<StoredSession>(api.get(sessions, { namespace, name }, { signal }));
    const turn = await ifThere<StoredTurn>(api.get(turns, { namespace, name: firstTurnName(name) }, { signal }));
    const isOver = session?.status?.phase === 'Finished' || clock.monotonic() >= end;
    if (!session || turn || isOver) return { session, turn };
    await delay(clock, LOOK_MS, signal);
  }
}
