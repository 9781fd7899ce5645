import { Approval, askedBy, type Question } from './approvals.ts';
import { type FollowOptions, followSession, type SessionStreamEvent } from './follow.ts';
import type * as wire from './generated/wire.ts';
import { type CreateOptions, created, type ListOptions, listed, objectOf, pathOf, selection } from './objects.ts';
import type { Caller, Limits } from './retry.ts';
import { Turn, Turns } from './turns.ts';

export type SessionSpec = NonNullable<wire.SessionCreate['spec']>;

export interface ActionOptions extends Limits {
  /** Default: a random one. */
  idempotencyKey?: string | undefined;
}

export interface SessionFollowOptions extends FollowOptions {
  /** With the lines that the agent prints. Default: false. */
  logs?: boolean | undefined;
}

/** A session, by its name. What it asks the server to change concerns the session that was read, and no other that has come under its name. */
export class Session {
  readonly name: string;
  readonly namespace: string;
  readonly turns: Turns;
  readonly #caller: Caller;
  #object: wire.Session | undefined;

  constructor(caller: Caller, { namespace, name }: { namespace: string; name: string }, object?: wire.Session) {
    this.name = name;
    this.namespace = namespace;
    this.#caller = caller;
    this.#object = object;
    this.turns = new Turns(caller, { namespace, session: name }, () => this.uid);
  }

  /** The session as it was read last; undefined before. */
  get object(): wire.Session | undefined {
    return this.#object;
  }

  get uid(): string | undefined {
    return this.#object?.metadata.uid;
  }

  /** Reads the session, which never wakes it. */
  async get(limits: Limits = {}): Promise<wire.Session> {
    const { value } = await this.#caller.json<wire.Session>({ ...limits, method: 'GET', path: this.#path });
    return this.#noted(value);
  }

  /** Returns a turn of this name, without a request. */
  turn(name: string): Turn {
    return new Turn(this.#caller, { namespace: this.namespace, session: this.name, turn: name });
  }

  /** Suspends the session after its present turns. With `hold` later turns wait until it is resumed; without, they wake it. */
  suspend({ hold = false, ...options }: ActionOptions & { hold?: boolean | undefined } = {}): Promise<wire.Session> {
    return this.#act('suspend', { hold }, options);
  }

  /** Takes back a suspension or hold. */
  resume(limits: Limits = {}): Promise<wire.Session> {
    return this.#act('resume', {}, limits, false);
  }

  /** Has the pod replaced after the running turn. */
  restart(options: ActionOptions = {}): Promise<wire.Session> {
    return this.#act('restart', {}, options);
  }

  /** Says that the session is in use. */
  touch(limits: Limits = {}): Promise<wire.Session> {
    return this.#act('touch', {}, limits, false);
  }

  /** Deletes the session with its turns, state and logs. */
  delete(limits: Limits = {}): Promise<void> {
    return this.#caller.delete({ ...limits, path: this.#path, query: { uid: this.uid } });
  }

  /**
   * Yields everything that happens to the session, to its deletion; with `logs` also the lines that the agent prints. Goes on by itself after a stream
   * that broke. Rejects with NotFound or UIDMismatch where the session was deleted while no stream was there.
   */
  events({ logs, ...options }: SessionFollowOptions = {}): AsyncGenerator<SessionStreamEvent, void, undefined> {
    return followSession(this.#caller, `${this.#path}/events`, { ...options, query: { logs }, uid: this.uid });
  }

  /** Returns the question that an event of the session has, without a request. */
  approval({ turn, ...question }: Question & { turn: string }): Approval {
    return new Approval(this.#caller, { namespace: this.namespace, session: this.name, turn }, question);
  }

  /** Returns the questions that the session's turns wait with. */
  async approvals(limits: Limits = {}): Promise<Approval[]> {
    const waiting: Approval[] = [];
    for await (const { object } of this.turns.list({ ...limits, phase: 'AwaitingApproval' })) {
      const approval = object && askedBy(this.#caller, object);
      if (approval) waiting.push(approval);
    }
    return waiting;
  }

  get #path(): string {
    return pathOf('namespaces', this.namespace, 'sessions', this.name);
  }

  async #act(
    action: string,
    body: object,
    { idempotencyKey, ...limits }: ActionOptions,
    takesKey = true,
  ): Promise<wire.Session> {
    const { value } = await this.#caller.json<wire.Session>({
      ...limits,
      method: 'POST',
      path: `${this.#path}/${action}`,
      query: { uid: this.uid },
      body: JSON.stringify(body),
      key: takesKey ? (idempotencyKey ?? globalThis.crypto.randomUUID()) : undefined,
    });
    return this.#noted(value);
  }

  #noted(object: wire.Session): wire.Session {
    this.#object = objectOf(object, 'session', this.#caller);
    return object;
  }
}

export interface SessionListOptions extends ListOptions {
  /** Only those that were made for the session of this name. */
  parent?: string | undefined;
}

/** The sessions of the namespace. */
export class Sessions {
  readonly #caller: Caller;
  readonly #namespace: string;

  constructor(caller: Caller, namespace: string) {
    this.#caller = caller;
    this.#namespace = namespace;
  }

  async create(spec: SessionSpec = {}, options: CreateOptions = {}): Promise<Session> {
    const { value } = await created<wire.Session>(this.#caller, this.#path, spec, options);
    return this.#sessionOf(value);
  }

  async get(name: string, limits: Limits = {}): Promise<Session> {
    const session = new Session(this.#caller, { namespace: this.#namespace, name });
    await session.get(limits);
    return session;
  }

  /** Yields the sessions in the order of their names, without their inputs. */
  async *list({
    parent,
    signal,
    deadlineMs,
    ...options
  }: SessionListOptions = {}): AsyncGenerator<Session, void, undefined> {
    const query = { ...selection(options), parent };
    for await (const session of listed<wire.Session>(this.#caller, this.#path, { query, signal, deadlineMs })) {
      yield this.#sessionOf(session);
    }
  }

  get #path(): string {
    return pathOf('namespaces', this.#namespace, 'sessions');
  }

  #sessionOf(object: wire.Session): Session {
    const { name } = objectOf(object, 'session', this.#caller).metadata;
    return new Session(this.#caller, { namespace: this.#namespace, name }, object);
  }
}
