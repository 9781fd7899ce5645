import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import { ANNOTATION_TOUCHED_AT } from '../../../core/resources/names.ts';
import type { Observer } from '../observer.ts';
import { type Facts, ownerOf, SESSIONS, TURNS } from './facts.ts';

/** When sessions really were active last, by the API server's clock. */
export class Activity implements Partial<Observer> {
  readonly #facts: Facts;
  readonly #at = new Map<string, { wall: number; virtual: number }>();
  readonly #touches = new Map<string, string>();
  readonly #attempts = new Map<string, string>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  /** Milliseconds since the session was last active. */
  restedMs(sessionUID: string): number {
    return this.#facts.server.clock.now() - (this.#at.get(sessionUID)?.wall ?? 0);
  }

  /** The same, without hours that have passed unnoticed. */
  livedMs(sessionUID: string): number {
    return this.#facts.kubelets.now - (this.#at.get(sessionUID)?.virtual ?? Number.NEGATIVE_INFINITY);
  }

  committed: Observer['committed'] = ({ storage, type, object }) => {
    if (type === 'DELETED') return;
    if (storage === SESSIONS) this.#session(type === 'ADDED', object as unknown as StoredSession);
    if (storage === TURNS) this.#turn(object as unknown as StoredTurn);
  };

  /** A runner counts from its binding on. */
  bound: Observer['bound'] = ({ session }) => this.#now(session.uid);
  runStarted: Observer['runStarted'] = ({ sessionUID }) => this.#now(sessionUID);
  runEnded: Observer['runEnded'] = ({ sessionUID }) => this.#now(sessionUID);
  touched: Observer['touched'] = (sessionUID) => this.#now(sessionUID);

  #session(added: boolean, { metadata }: StoredSession): void {
    const { uid } = metadata;
    if (added) this.#now(uid);
    const touched = metadata.annotations?.[ANNOTATION_TOUCHED_AT] ?? '';
    if (touched !== (this.#touches.get(uid) ?? '')) this.#now(uid);
    this.#touches.set(uid, touched);
  }

  #turn(turn: StoredTurn): void {
    const { phase, attempt } = turn.status ?? {};
    const owner = ownerOf(turn);
    const now = `${owner} ${phase} ${attempt}`;
    if (this.#attempts.get(turn.metadata.uid) === now) return;
    this.#attempts.set(turn.metadata.uid, now);
    // One that has ended did so when its agent did, however late that is written.
    if (owner) this.#now(owner, Date.parse(turn.status?.finishedAt ?? ''));
  }

  #now(sessionUID: string, at = Number.NaN): void {
    const { server, kubelets } = this.#facts;
    const ago = Math.max(0, server.clock.now() - at) || 0;
    const { wall, virtual } = this.#at.get(sessionUID) ?? { wall: 0, virtual: Number.NEGATIVE_INFINITY };
    this.#at.set(sessionUID, {
      wall: Math.max(wall, server.clock.now() - ago),
      virtual: Math.max(virtual, kubelets.now - ago),
    });
  }
}
