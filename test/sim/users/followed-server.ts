import { SharedLogs } from '../../../api/streams/shared-logs.ts';
import { WatchedNamespaces } from '../../../api/streams/watched-namespaces.ts';
import { ownLines, type ReadLines } from '../../../core/follow/pod-lines.ts';
import { States } from '../../../core/follow/states.ts';
import { silentLogger } from '../../../core/system.ts';
import { FollowerApi, type FollowerApiOptions } from '../api/follower-api.ts';
import type { Dice } from '../random.ts';
import { Process } from '../scheduler.ts';

type Surroundings = Omit<FollowerApiOptions, 'process' | 'dice'>;

/** What a follower reads from, for as long as its process lives. */
export interface Source {
  readonly process: Process;
  readonly api: FollowerApi;
  readonly read: ReadLines;
  /** Resolves to the states of the session, kept up to date until the signal aborts. */
  states(ref: { namespace: string; name: string }, signal: AbortSignal): Promise<States>;
}

/** The CLI of one person, with watches and logs of its own for each connection. */
export function ownSource(name: string, dice: Dice, surroundings: Surroundings): Source {
  const process = new Process(name, surroundings.scheduler);
  const api = new FollowerApi({ ...surroundings, process, dice: dice.stream('api') });
  return {
    process,
    api,
    read: ownLines(api, process),
    async states({ namespace, name: session }, signal) {
      const states = new States({ api, clock: process, random: dice, log: silentLogger, namespace, session });
      signal.addEventListener('abort', () => void states.stop(), { once: true });
      return states;
    },
  };
}

/** A replica of the HTTP API: watches and logs that all its followers share. */
export function sharedSource(name: string, dice: Dice, surroundings: Surroundings): Source {
  const process = new Process(name, surroundings.scheduler);
  const api = new FollowerApi({ ...surroundings, process, dice: dice.stream('api') });
  const watched = new WatchedNamespaces({ api, clock: process, random: dice, log: silentLogger });
  // So little is kept that followers also read what is older.
  const logs = new SharedLogs({ clock: process, most: 4, bytes: dice.pick([1_000, 4_000, 1_000_000]) });
  return {
    process,
    api,
    read: logs.readFrom(api),
    states: ({ namespace }, signal) => watched.follow(namespace, signal),
  };
}
