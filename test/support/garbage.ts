import { Garbage, type GarbageOptions } from '../../controller/garbage/garbage.ts';
import type { CachedSession } from '../../controller/observed/world.ts';
import { silentLogger } from '../../core/system.ts';
import { seededRandom } from './random.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** Stand-ins for what the sweeps use; `ended` aborts when the leadership ends, `closing` when the controller stops. */
interface StandIns {
  api: object;
  caches: object;
  store?: object;
  ended?: AbortSignal;
  closing?: AbortSignal;
  [option: string]: unknown;
}

/** Starts the garbage collection on stand-ins, with sweeps a minute apart. */
export function startGarbage(clock: VirtualClock, { ended, closing, ...options }: StandIns): Garbage {
  const never = new AbortController().signal;
  const garbage = new Garbage({
    store: { list: async () => [] },
    log: silentLogger,
    clock,
    ownTime: () => clock.now(),
    random: seededRandom(1),
    intervalMs: 60_000,
    ...options,
    signal: ended ?? never,
    closing: closing ?? ended ?? never,
  } as unknown as GarbageOptions);
  garbage.start();
  return garbage;
}

/** Caches that hold this session alone. */
export const cachesOf = (session: CachedSession) => ({
  allSessions: () => [session],
  session: () => session,
  turnsNaming: () => [],
});
