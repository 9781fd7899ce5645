import type { Wish } from '../../../core/enter/hello.ts';
import { TestVisit } from '../../support/visit.ts';
import { commandWords } from '../cluster/client-work.ts';
import type { SimContainer } from '../cluster/container.ts';
import type { Kubelets } from '../cluster/kubelets.ts';
import { repeated, type Surroundings } from './repeated.ts';

interface Pods extends Surroundings {
  kubelets: Kubelets;
}

/** A client at a command or a transfer. */
interface Client {
  container: SimContainer;
  visit: TestVisit;
}

/**
 * People who enter sessions: they run commands, with a client or without, use terminals, read files, and go away, until a while after
 * `end`. Commands that run then go on, some of them for longer than the world. Others look which commands there are for as long as the
 * world lasts.
 */
export class Visitors {
  readonly #here: Pods;
  readonly #stop: () => void;
  #clients: Client[] = [];
  #isOver = false;
  #number = 0;

  constructor(surroundings: Pods) {
    this.#here = surroundings;
    const { dice } = surroundings;
    this.#stop = repeated(surroundings, 'somebody who enters sessions', dice.skewed(500, 6000), () => this.#act());
    repeated(surroundings, 'somebody who looks', dice.skewed(1000, 5000), () => this.#look());
  }

  /** Ends visits soon: nobody types any more then, and transfers end. */
  end(): void {
    const { scheduler, dice } = this.#here;
    scheduler.after(dice.skewed(1000, 120_000), undefined, 'nobody enters sessions any more', () => {
      this.#stop();
      this.#isOver = true;
      for (const { visit } of this.#clients) if ('root' in visit.hello) visit.leave();
    });
  }

  #act(): void {
    const { dice, trace } = this.#here;
    this.#clients = this.#clients.filter(({ visit, container }) => !visit.gone.aborted && !container.exit);
    const deeds: [weight: number, name: string, deed: () => void][] = [
      [4, 'starts a command', () => this.#start(dice.chance(0.4) ? { detach: true } : {})],
      [1, 'opens a terminal', () => this.#start({ tty: { rows: 24, columns: 80 }, stdin: true })],
      [1, 'reads files', () => this.#read()],
      [1, 'goes away', () => dice.pick(this.#clients)?.visit.leave()],
      [1, 'ends a command', () => this.#signal()],
    ];
    const drawn = dice.weighted(deeds.map(([weight, name, deed]) => ({ weight, name, deed })));
    trace.line(() => ['visitor', drawn?.name ?? 'nothing']);
    drawn?.deed();
  }

  #start(how: { detach?: boolean; stdin?: boolean; tty?: { rows: number; columns: number } }): void {
    const { dice } = this.#here;
    // Some run on until long after the faults.
    const ms = dice.chance(0.2) ? dice.skewed(60_000, 2 * 3_600_000) : dice.skewed(200, 60_000);
    const command = commandWords(ms, dice.skewed(1, 4000));
    const timeout = dice.chance(0.1) ? { timeoutSeconds: dice.int(1, 60) } : {};
    const id = `c${++this.#number}`;
    const input = how.tty !== undefined;
    const client = this.#enter({ want: 'command', id, start: { command, ...how, ...timeout }, input });
    if (client && input) this.#type(client, 0);
  }

  #read(): void {
    const { dice, scheduler } = this.#here;
    const client = this.#enter({ want: 'read', root: 'work', path: 'a-file' });
    if (client) scheduler.after(dice.skewed(50, 60_000), undefined, 'a transfer ends', () => client.visit.leave());
  }

  #signal(): void {
    const { dice } = this.#here;
    const { hello } = dice.pick(this.#clients)?.visit ?? {};
    if (hello?.want !== 'command') return;
    this.#enter({ want: 'signal', id: hello.id, signal: 'SIGTERM', graceMs: 5000 });
  }

  #look(): void {
    this.#enter({ want: 'commands' });
  }

  /** Types a byte from time to time, as long as the client is there. */
  #type({ container, visit }: Client, position: number): void {
    const { dice } = this.#here;
    container.process.after(dice.skewed(200, 30_000), 'somebody types', () => {
      if (this.#isOver || visit.gone.aborted) return;
      if (visit.json('ready')) {
        container.work?.typed();
        visit.input(position++, 'x');
      }
      this.#type({ container, visit }, position);
    });
  }

  /** Connects a client to a pod that is bound; undefined where there is none. */
  #enter(wish: Wish): Client | undefined {
    const { dice, kubelets } = this.#here;
    const container = dice.pick(kubelets.running.map((one) => one.container).filter((one) => one.bind && one.work));
    if (!container?.bind) return undefined;
    const { session, incarnation } = container.bind;
    const visit = new TestVisit(wish, { session: session.uid, incarnation });
    const client = { container, visit };
    if (wish.want === 'command' || wish.want === 'read') this.#clients.push(client);
    container.process.after(dice.skewed(1, 50), `a client that wants ${wish.want}`, () => container.enter(visit));
    return client;
  }
}
