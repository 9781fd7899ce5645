import { parseSessionCursor } from '../../../core/follow/cursor.ts';
import { ownLines } from '../../../core/follow/pod-lines.ts';
import { sessionEvents } from '../../../core/follow/session-events.ts';
import { States } from '../../../core/follow/states.ts';
import { ApiError, isNotFound, TransportError } from '../../../core/kube/errors.ts';
import { sessions } from '../../../core/resources/kinds.ts';
import { silentLogger } from '../../../core/system.ts';
import type { FaultRates } from '../api/faults.ts';
import { FollowerApi } from '../api/follower-api.ts';
import type { SimServer } from '../api/server.ts';
import type { Kubelets } from '../cluster/kubelets.ts';
import type { Observer } from '../observer.ts';
import type { Dice } from '../random.ts';
import { Process, type Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';

interface Surroundings {
  scheduler: Scheduler;
  server: SimServer;
  kubelets: Kubelets;
  trace: Trace;
  dice: Dice;
  rates: () => FaultRates;
  observer: Pick<Observer, 'followerTold'>;
  onFault(message: string): void;
}

const COUNT = 2;
/** Time between two connections, and between two looks for a session, milliseconds. */
const PAUSE_MS = 500;

interface Name {
  namespace: string;
  name: string;
}

/** People who follow a session each, as `berth` does: until it is deleted, over connections that end, from the place they were told last. */
export class Followers {
  readonly #here: Surroundings;
  /** What ends the connections that are open. */
  readonly #open = new Set<() => void>();

  constructor(surroundings: Surroundings) {
    this.#here = surroundings;
    for (let number = 0; number < COUNT; number++) void this.#live(number);
  }

  /** Has all connect anew: a watch that was stalled by a fault is over with its connection. */
  calm(): void {
    for (const end of [...this.#open]) end();
  }

  async #live(number: number): Promise<void> {
    const { scheduler, server, dice, ...rest } = this.#here;
    const process = new Process(`follower-${number}`, scheduler);
    const own = dice.stream(process.name);
    const api = new FollowerApi({ ...rest, process, scheduler, server, dice: own.stream('api') });
    for (;;) {
      await process.sleep(PAUSE_MS);
      const session = own.pick(server.list(sessions));
      if (!session) continue;
      const { namespace, name } = session.metadata;
      await this.#followName({ namespace, name }, process, api, own);
    }
  }

  /** Follows the sessions of a name, one after the other, until there is none. */
  async #followName(ref: Name, process: Process, api: FollowerApi, dice: Dice): Promise<void> {
    const { trace, onFault } = this.#here;
    let lastId: string | undefined;
    for (;;) {
      try {
        const { metadata } = await api.get(sessions, ref);
        trace.line(() => [process.name, 'follows', `${ref.namespace}/${ref.name}`, lastId ?? 'from now on']);
        for await (const id of this.#connection({ ...ref, ...metadata }, lastId, process, api, dice)) lastId = id;
      } catch (error) {
        if (isNotFound(error)) return;
        const isExpected = error instanceof ApiError || error instanceof TransportError || error === OVER;
        if (!isExpected) onFault(`works: a follower of ${ref.name}: ${(error as Error).stack}`);
      }
      await process.sleep(PAUSE_MS);
    }
  }

  /** Follows a session over one connection; yields the place after each event. */
  async *#connection(
    { namespace, name, uid, resourceVersion }: Name & { uid: string; resourceVersion: string },
    lastId: string | undefined,
    process: Process,
    api: FollowerApi,
    dice: Dice,
  ): AsyncGenerator<string> {
    const { observer, trace } = this.#here;
    const stop = new AbortController();
    const end = () => stop.abort(OVER);
    this.#open.add(end);
    const cancel = process.after(dice.skewed(500, 60_000), 'connection ends', end);
    const states = new States({ api, clock: process, random: dice, log: silentLogger, namespace, session: name });
    const from = lastId === undefined ? undefined : parseSessionCursor(lastId);
    const { signal } = stop;
    const options = { namespace, name, uid, resourceVersion, logs: true, signal };
    const follow = { clock: process, states, read: ownLines(api, process) };
    try {
      for await (const placed of sessionEvents(follow, { ...options, from })) {
        trace.line(() => [process.name, 'is told', placed.told.type, `place ${placed.id}`]);
        observer.followerTold(process.name, uid, placed);
        yield placed.id;
      }
    } finally {
      cancel();
      this.#open.delete(end);
      void states.stop();
    }
  }
}

const OVER = new Error('the connection has ended');
