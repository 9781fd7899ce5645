import { anySignal } from '../abort.ts';
import { Informer } from '../kube/informer.ts';
import { compareVersions } from '../kube/resource-version.ts';
import type { KubeApi } from '../kube/types.ts';
import { type Session, sessions, type Turn, turns } from '../resources/kinds.ts';
import { isTerminal } from '../resources/turn-phases.ts';
import type { Clock, Logger, Random } from '../runtime.ts';
import { CatchUp } from './catch-up.ts';
import { isAfter, type StateCursor } from './cursor.ts';
import { type SessionView, type TurnView, viewSession, viewTurn } from './views.ts';

type Change =
  | { kind: 'session'; view: SessionView; isDeleted?: true }
  | { kind: 'turn'; view: TurnView; isDeleted?: true };

/** A change, and the place in the stream once it has been sent. */
export interface PlacedChange {
  change: Change;
  cursor: StateCursor;
}

export interface StatesOptions {
  api: KubeApi;
  clock: Clock;
  random: Random;
  log: Logger;
  namespace: string;
  /** Name of the only session to watch, with its turns. Default: all. */
  session?: string;
}

/** Longest wait for a watch that lags behind a live read, milliseconds. */
const LAG_MS = 1_000;

const START: StateCursor = { sessions: '0', turns: '0' };

/** Sessions and turns of a namespace, kept by one watch each, for any number of followers. */
export class States {
  readonly #sessions: Informer<Session, SessionView>;
  readonly #turns: Informer<Turn, TurnView>;
  readonly #namespace: string;
  readonly #followers = new Set<Pending>();
  readonly #clock: Clock;
  readonly #catchUp: CatchUp;
  readonly #stopped = new AbortController();

  constructor({ namespace, session, ...surroundings }: StatesOptions) {
    this.#namespace = namespace;
    this.#clock = surroundings.clock;
    const common = { ...surroundings, namespaces: [namespace] };
    this.#sessions = new Informer<Session, SessionView>({
      ...common,
      resource: sessions,
      ...(session === undefined ? {} : { fieldSelector: `metadata.name=${session}` }),
      transform: viewSession,
      unreadable: ({ metadata }) => ({ metadata, phase: 'Queued' }),
    });
    this.#turns = new Informer<Turn, TurnView>({
      ...common,
      resource: turns,
      ...(session === undefined ? {} : { fieldSelector: `spec.session=${session}` }),
      indexes: { session: (turn) => [turn.session] },
      transform: viewTurn,
      unreadable: ({ metadata }) => ({ metadata, session: '', phase: 'Queued', status: {} }),
    });
    this.#catchUp = new CatchUp(surroundings.clock, () =>
      Promise.all([this.#sessions.relist(this.#stopped.signal), this.#turns.relist(this.#stopped.signal)]),
    );
    const pass = (change: Change) => {
      for (const pending of this.#followers) pending.add(change);
    };
    this.#sessions.addHandler({
      add: (view) => pass({ kind: 'session', view }),
      update: (view) => pass({ kind: 'session', view }),
      delete: (view) => pass({ kind: 'session', view, isDeleted: true }),
    });
    this.#turns.addHandler({
      add: (view) => pass({ kind: 'turn', view }),
      update: (view) => pass({ kind: 'turn', view }),
      delete: (view) => pass({ kind: 'turn', view, isDeleted: true }),
    });
    this.#sessions.start();
    this.#turns.start();
  }

  async stop(): Promise<void> {
    this.#catchUp.stop();
    this.#stopped.abort(new Error('nobody follows the namespace'));
    await Promise.all([this.#sessions.stop(), this.#turns.stop()]);
  }

  /** Error that keeps the watches from following the server at present. */
  get problem(): Error | undefined {
    return this.#sessions.problem ?? this.#turns.problem;
  }

  /**
   * Resolves once both watches have read everything. Rejects when the namespace cannot be read, and with the signal's
   * reason.
   */
  async synced(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#sessions.synced(signal), this.#turns.synced(signal)]);
    const closed = this.#sessions.closed(this.#namespace) ?? this.#turns.closed(this.#namespace);
    if (closed) throw closed;
  }

  /**
   * Resolves to the session of this name and UID; undefined if it does not exist any more. `version`: the resourceVersion
   * with which it was read; default: not known.
   */
  async find(
    name: string,
    uid: string,
    version: string | undefined,
    signal: AbortSignal,
  ): Promise<SessionView | undefined> {
    await this.synced(signal);
    const known = () => {
      const view = this.#sessions.get(this.#namespace, name);
      return view?.metadata.uid === uid ? view : undefined;
    };
    // The watch may lag behind its creation, and so know none of the name or one that was deleted before.
    const isBehind = () => !known() && (version === undefined || isAfter(version, this.#position().sessions));
    if (version !== undefined) await this.#changesWhile(isBehind, name, signal);
    if (isBehind()) await this.#catchUp.again(signal);
    return known();
  }

  /** Resolves once no more change of the session is needed, or none has come for a while. */
  async #changesWhile(isNeeded: () => boolean, session: string, signal: AbortSignal): Promise<void> {
    if (!isNeeded()) return;
    const pending = new Pending(session);
    const patience = new AbortController();
    const cancel = this.#clock.setTimer(LAG_MS, () => patience.abort());
    this.#followers.add(pending);
    try {
      while (isNeeded()) {
        await pending.arrival(anySignal(signal, patience.signal));
        pending.take();
      }
    } catch (error) {
      if (!patience.signal.aborted || signal.aborted) throw error;
    } finally {
      cancel();
      this.#followers.delete(pending);
    }
  }

  /** The turn that the session's agent works on. */
  runningTurn(session: string): TurnView | undefined {
    return this.#turns.byIndex('session', session).find(({ phase }) => phase === 'Running');
  }

  /**
   * Resolves to false if the server has never been where the place is: it is another server, or was restored from a
   * backup.
   */
  async hasReached(place: StateCursor, signal: AbortSignal): Promise<boolean> {
    const isAhead = () => {
      const { sessions, turns } = this.#position();
      return isAfter(place.sessions, sessions) || isAfter(place.turns, turns);
    };
    // Another replica's watches can be ahead of these.
    if (isAhead()) await this.#catchUp.again(signal);
    return !isAhead();
  }

  /**
   * Yields the changes of all sessions and turns, or of one session and its turns, until the signal aborts. It begins with
   * what is newer than `from`; without `from` with all sessions and the turns that have not ended. What changes several
   * times before it is taken is yielded once. A deletion is yielded only as it happens.
   */
  async *changes(options: {
    session?: string;
    from?: StateCursor | undefined;
    signal: AbortSignal;
  }): AsyncGenerator<PlacedChange> {
    const { session, from, signal } = options;
    await this.synced(signal);
    const start = from && ((await this.hasReached(from, signal)) ? from : START);
    const pending = new Pending(session);
    for (const view of this.#sessions.list()) {
      if (!start || isAfter(view.metadata.resourceVersion, start.sessions)) pending.add({ kind: 'session', view });
    }
    for (const view of session === undefined ? this.#turns.list() : this.#turns.byIndex('session', session)) {
      const isWanted = start ? isAfter(view.metadata.resourceVersion, start.turns) : !isTerminal(view.phase);
      if (isWanted) pending.add({ kind: 'turn', view });
    }
    this.#followers.add(pending);
    try {
      let cursor = start ?? START;
      for (;;) {
        const batch = pending.take();
        const reached = this.#position();
        for (const [i, change] of batch.entries()) {
          const { resourceVersion } = change.view.metadata;
          if (!change.isDeleted) cursor = { ...cursor, [`${change.kind}s`]: resourceVersion };
          // All that is as old as the watches is sent by then.
          if (i === batch.length - 1) cursor = reached;
          yield { change, cursor };
        }
        cursor = reached;
        await pending.arrival(signal);
      }
    } finally {
      this.#followers.delete(pending);
    }
  }

  #position(): StateCursor {
    const [of, from] = [this.#sessions.position(this.#namespace), this.#turns.position(this.#namespace)];
    return { sessions: of ?? '0', turns: from ?? '0' };
  }
}

/** Changes that a follower has not taken yet, at most two an object: its last state, and its deletion. */
class Pending {
  readonly #session: string | undefined;
  readonly #changes = new Map<string, Change>();
  #wake: () => void = () => {};

  constructor(session: string | undefined) {
    this.#session = session;
  }

  add(change: Change): void {
    const { kind, view, isDeleted } = change;
    const session = kind === 'session' ? view.metadata.name : view.session;
    if (this.#session !== undefined && session !== this.#session) return;
    const key = `${kind} ${view.metadata.uid}${isDeleted ? ' deleted' : ''}`;
    this.#changes.set(key, change);
    this.#wake();
  }

  /** Takes all changes: states by their versions, so that the stream can go on after any of them, then deletions. */
  take(): Change[] {
    const changes = [...this.#changes.values()];
    this.#changes.clear();
    const version = ({ view }: Change) => view.metadata.resourceVersion;
    return changes.sort(
      (a, b) =>
        Number(a.isDeleted ?? false) - Number(b.isDeleted ?? false) || (compareVersions(version(a), version(b)) ?? 0),
    );
  }

  /** Resolves when there is a change; rejects with the signal's reason. */
  arrival(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (this.#changes.size > 0) return resolve();
      const onAbort = () => reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#wake = () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
    });
  }
}
