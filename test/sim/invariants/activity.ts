import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import { ANNOTATION_TOUCHED_AT } from '../../../core/resources/names.ts';
import type { Observer } from '../observer.ts';
import { type Facts, ownerOf, SESSIONS, TURNS } from './facts.ts';
import { Terms } from './terms.ts';

/** Source by which activity is first visible: an API write, or a pod, whose runner reports it. */
type Source = 'api' | 'runner';

/** Times up to which activity counts, virtual milliseconds. */
export type Until = Readonly<Record<Source, number>>;

interface Moment {
  source: Source;
  /** Time from which the activity was visible, virtual milliseconds. */
  seen: number;
  /** Time of the activity: by the API server's clock, and in virtual milliseconds. */
  wall: number;
  virtual: number;
  /** Uid of the turn that alone shows it. */
  turn?: string | undefined;
}

/** Time after which a new leader has reconciled all sessions, and so knows of their turns. */
const BEGINS_MS = 10_000;

/** Times at which sessions really were active, by the API server's clock. */
export class Activity implements Partial<Observer> {
  readonly #facts: Facts;
  readonly #moments = new Map<string, Moment[]>();
  readonly #touches = new Map<string, string>();
  readonly #attempts = new Map<string, string>();
  readonly #terms: Terms;
  /** Turn → its deletion, virtual milliseconds. */
  readonly #deletedAt = new Map<string, number>();

  constructor(facts: Facts) {
    this.#facts = facts;
    this.#terms = new Terms(facts);
  }

  /**
   * Returns the milliseconds since the session's last activity that was visible by `until`. A turn that was deleted before the
   * controller's process led shows it nothing.
   */
  restedMs(sessionUID: string, until: Until, process: string): number {
    const knowsSince = this.#terms.since(process) + BEGINS_MS;
    const isThere = (turn: string | undefined) =>
      (this.#deletedAt.get(turn ?? '') ?? Number.POSITIVE_INFINITY) > knowsSince;
    const isSeen = ({ seen, source, turn }: Moment) => seen <= until[source] && isThere(turn);
    const seen = this.#moments.get(sessionUID)?.filter(isSeen) ?? [];
    return this.#facts.server.clock.now() - Math.max(0, ...seen.map(({ wall }) => wall));
  }

  /** Returns the virtual milliseconds since the last activity, without jumps of the wall clocks. */
  livedMs(sessionUID: string): number {
    return this.#facts.kubelets.now - Math.max(...(this.#moments.get(sessionUID) ?? []).map(({ virtual }) => virtual));
  }

  committed: Observer['committed'] = (change) => {
    const { storage, type, object } = change;
    if (this.#terms.see(change, this.#facts.callBehind(change))) return;
    if (type === 'DELETED') {
      if (storage === TURNS) this.#deletedAt.set(object.metadata.uid ?? '', this.#facts.kubelets.now);
      return;
    }
    if (storage === SESSIONS) this.#session(type === 'ADDED', object as unknown as StoredSession);
    if (storage === TURNS) this.#turn(object as unknown as StoredTurn);
  };

  /** A runner's activity begins with its binding. */
  bound: Observer['bound'] = ({ session }) => this.#now(session.uid, 'runner');
  runStarted: Observer['runStarted'] = ({ sessionUID }) => this.#now(sessionUID, 'runner');
  runEnded: Observer['runEnded'] = ({ sessionUID }) => this.#now(sessionUID, 'runner');
  talked: Observer['talked'] = ({ sessionUID }) => this.#now(sessionUID, 'runner');
  touched: Observer['touched'] = (sessionUID) => this.#now(sessionUID, 'runner');

  #session(added: boolean, { metadata }: StoredSession): void {
    const { uid } = metadata;
    if (added) this.#now(uid, 'api');
    const touched = metadata.annotations?.[ANNOTATION_TOUCHED_AT] ?? '';
    if (touched !== (this.#touches.get(uid) ?? '')) this.#now(uid, 'api');
    this.#touches.set(uid, touched);
  }

  #turn(turn: StoredTurn): void {
    const { phase = 'Queued', attempt, finishedAt } = turn.status ?? {};
    const owner = ownerOf(turn);
    const now = `${owner} ${phase} ${attempt}`;
    if (this.#attempts.get(turn.metadata.uid) === now) return;
    this.#attempts.set(turn.metadata.uid, now);
    // A turn came when it was created, and ended when its agent did, however late its owner and its end are written.
    const at = finishedAt ?? (phase === 'Queued' ? turn.metadata.creationTimestamp : '');
    if (owner) this.#now(owner, 'api', Date.parse(at), turn.metadata.uid);
  }

  #now(sessionUID: string, source: Source, at = Number.NaN, turn?: string): void {
    const { server, kubelets } = this.#facts;
    const ago = Math.max(0, server.clock.now() - at) || 0;
    const moment = { source, seen: kubelets.now, wall: server.clock.now() - ago, virtual: kubelets.now - ago, turn };
    this.#moments.set(sessionUID, [...(this.#moments.get(sessionUID) ?? []), moment]);
  }
}
