import type { Observer } from '../observer.ts';
import type { Facts } from './facts.ts';

/** Clients' work in a pod from a virtual time on, until the next entry; `wall` by the API server's clock. */
interface Moment {
  at: number;
  wall: number;
  open: number;
}

/** Times at which clients really worked in pods. */
export class ClientActivity implements Partial<Observer> {
  readonly #facts: Pick<Facts, 'server' | 'kubelets'>;
  readonly #moments = new Map<string, Moment[]>();
  /** Pod → when its runner's messages about activity were sent, in virtual milliseconds and by the API server's clock. */
  readonly #said = new Map<string, Omit<Moment, 'open'>[]>();

  constructor(facts: Pick<Facts, 'server' | 'kubelets'>) {
    this.#facts = facts;
  }

  clientsWorked: Observer['clientsWorked'] = (_, { podUID, work }) => {
    const { server, kubelets } = this.#facts;
    add(this.#moments, podUID, { at: kubelets.now, wall: server.clock.now(), open: work?.open ?? 0 });
  };

  heard: Observer['heard'] = ({ podUID, process }, { agoMs, onActivity }) => {
    if (!onActivity) return;
    add(this.#said, podUID, { at: process.monotonic() - agoMs, wall: this.#facts.server.clock.now() - agoMs });
  };

  /**
   * Returns the milliseconds since clients last worked in the pod, as far as its runner could tell by `until`: work that goes on lasted
   * until the message that was sent then, or lasts still. Infinity where there was none.
   */
  restedMs(podUID: string, until: number): number {
    const last = this.#moments.get(podUID)?.findLast(({ at }) => at <= until);
    if (!last) return Number.POSITIVE_INFINITY;
    const now = this.#facts.server.clock.now();
    if (last.open === 0) return now - last.wall;
    return now - (this.#said.get(podUID)?.findLast(({ at }) => at === until)?.wall ?? now);
  }
}

function add<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}
