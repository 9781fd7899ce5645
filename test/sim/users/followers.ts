import { parseSessionCursor } from '../../../core/follow/cursor.ts';
import { sessionEvents } from '../../../core/follow/session-events.ts';
import { ApiError, isNotFound, TransportError } from '../../../core/kube/errors.ts';
import { sessions } from '../../../core/resources/kinds.ts';
import type { FaultRates } from '../api/faults.ts';
import type { SimServer } from '../api/server.ts';
import type { Kubelets } from '../cluster/kubelets.ts';
import type { Observer } from '../observer.ts';
import type { Dice } from '../random.ts';
import { Process, type Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';
import { ownSource, type Source, sharedSource } from './followed-server.ts';

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
const REPLICAS = 2;
/** Time between two connections, and between two looks for a session, milliseconds. */
const PAUSE_MS = 500;

const OVER = new Error('the connection has ended');

interface Name {
  namespace: string;
  name: string;
}

/**
 * People who follow a session each until it is deleted, over connections that end, from the place that they were told last: as
 * `berth` does, by a source of their own, or in half of the worlds by replicas of the HTTP API, which are killed now and then.
 */
export class Followers {
  readonly #here: Surroundings;
  /** What ends the connections that are open, with their sources. */
  readonly #open = new Map<() => void, Source>();
  /** Replicas of the HTTP API. Empty: the followers have sources of their own. */
  readonly #replicas: Source[] = [];
  #started = 0;

  constructor(surroundings: Surroundings) {
    this.#here = surroundings;
    const { dice } = surroundings;
    if (dice.stream('by the HTTP API').chance(0.5)) {
      for (let number = 0; number < REPLICAS; number++) this.#start(number, dice.stream(`api-${number}`));
    }
    for (let number = 0; number < COUNT; number++) void this.#live(`follower-${number}`);
  }

  /** Has all connect anew: a watch that was stalled by a fault is over with its process. */
  calm(): void {
    for (const [number, replica] of this.#replicas.entries()) {
      this.#kill(replica);
      this.#start(number, this.#here.dice.stream(`calm api-${number}`));
    }
    for (const end of [...this.#open.keys()]) end();
  }

  /** Starts a replica of the HTTP API, which is replaced after a while. */
  #start(number: number, dice: Dice): void {
    const replica = sharedSource(`api-${number}.${++this.#started}`, dice, this.#here);
    this.#replicas[number] = replica;
    replica.process.after(dice.skewed(5_000, 300_000), 'is killed', () => {
      this.#kill(replica);
      this.#start(number, dice.stream('next'));
    });
  }

  #kill(replica: Source): void {
    replica.process.kill();
    for (const [end, source] of [...this.#open]) if (source === replica) end();
  }

  async #live(follower: string): Promise<void> {
    const { scheduler, server, dice } = this.#here;
    const own = dice.stream(follower);
    const person = new Process(follower, scheduler);
    for (;;) {
      await person.sleep(PAUSE_MS);
      const session = own.pick(server.list(sessions));
      if (!session) continue;
      const { namespace, name } = session.metadata;
      await this.#followName({ namespace, name }, person, own);
    }
  }

  /** Follows the sessions of a name, one after the other, until there is none. */
  async #followName(ref: Name, person: Process, dice: Dice): Promise<void> {
    const { trace, onFault } = this.#here;
    const own = this.#replicas.length === 0 ? ownSource(person.name, dice, this.#here) : undefined;
    let lastId: string | undefined;
    for (;;) {
      try {
        const source = own ?? dice.pick(this.#replicas);
        trace.line(() => [
          person.name,
          'follows',
          `${ref.namespace}/${ref.name} by ${source.process.name}`,
          lastId ?? '',
        ]);
        for await (const id of this.#connection(ref, lastId, person, source, dice)) lastId = id;
      } catch (error) {
        if (isNotFound(error)) return;
        const isExpected = error instanceof ApiError || error instanceof TransportError || error === OVER;
        if (!isExpected) onFault(`works: a follower of ${ref.name}: ${(error as Error).stack}`);
      }
      await person.sleep(PAUSE_MS);
    }
  }

  /** Follows a session over one connection; yields the place after each event. */
  async *#connection(
    { namespace, name }: Name,
    lastId: string | undefined,
    person: Process,
    source: Source,
    dice: Dice,
  ): AsyncGenerator<string> {
    const { observer, trace } = this.#here;
    const stop = new AbortController();
    // A process that was killed answers nothing.
    const over = new Promise<undefined>((resolve) => stop.signal.addEventListener('abort', () => resolve(undefined)));
    const end = () => stop.abort(OVER);
    this.#open.set(end, source);
    const cancel = person.after(dice.skewed(500, 60_000), 'connection ends', end);
    const { signal } = stop;
    try {
      const found = await Promise.race([source.api.get(sessions, { namespace, name }, { signal }), over]);
      const states = found && (await Promise.race([source.states({ namespace, name }, signal), over]));
      if (!found || !states) return;
      const { uid, resourceVersion } = found.metadata;
      const from = lastId === undefined ? undefined : parseSessionCursor(lastId);
      const events = sessionEvents(
        { clock: source.process, states, read: source.read },
        { namespace, name, uid, resourceVersion, logs: true, signal, from },
      );
      for (;;) {
        const next = await Promise.race([events.next(), over]);
        if (!next || next.done) return;
        trace.line(() => [person.name, 'is told', next.value.event.type, `place ${next.value.id}`]);
        observer.followerTold(person.name, uid, next.value);
        yield next.value.id;
      }
    } finally {
      cancel();
      this.#open.delete(end);
      end();
    }
  }
}
