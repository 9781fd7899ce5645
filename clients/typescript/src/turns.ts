import { Approval, askedBy, type TurnPlace, turnPath } from './approvals.ts';
import { Artifact } from './artifacts.ts';
import { awaitEnd } from './await-end.ts';
import { failureOf, hasEnded, isEnd } from './ends.ts';
import { OutputTooLarge } from './errors.ts';
import { type FollowOptions, followSession, type SessionStreamEvent } from './follow.ts';
import type * as wire from './generated/wire.ts';
import { memberText } from './numbers.ts';
import { type CreateOptions, created, type ListOptions, listed, objectOf, pathOf, selection } from './objects.ts';
import { replaced } from './refusal.ts';
import type { Caller, Limits } from './retry.ts';

export type TurnSpec = NonNullable<wire.TurnCreate['spec']>;

export interface ResultOptions extends Limits {
  /**
   * Limit of the whole wait, milliseconds; the turn goes on when it is over. Default: none, and as long as the server answers within the
   * client's own deadline.
   */
  deadlineMs?: number | undefined;
  /** Gets each question of the turn once, and may decide on it. Default: the wait goes on until somebody else has decided. */
  onApproval?: ((approval: Approval) => void | Promise<void>) | undefined;
}

/** What happens to one turn. */
export type TurnStreamEvent = Exclude<SessionStreamEvent, { type: 'session' | 'log' | 'dropped' }>;

/** Id before all events. */
const BEGINNING = '0.0.0.0';

/** The output of a turn: its value, and its JSON text when somebody wants it. */
export interface Output {
  value: unknown;
  text: () => string;
}

/** How a turn has succeeded. */
export class Result<T = unknown> {
  /** The output with exact numbers: integers beyond ±(2^53 − 1) are `bigint`, others that a double cannot hold text. Undefined where there is none. */
  readonly output: T;
  readonly phase: string;
  readonly turn: Turn;
  /** Returns the JSON text of the output with every digit; empty where there is none. */
  readonly text: () => string;

  constructor({ turn, phase, output, text }: { turn: Turn; phase: string; output: T; text: () => string }) {
    this.turn = turn;
    this.phase = phase;
    this.output = output;
    this.text = text;
  }
}

/** A turn of a session, by its name. */
export class Turn {
  readonly name: string;
  /** Name of its session. */
  readonly session: string;
  readonly #caller: Caller;
  readonly #place: TurnPlace;
  #object: wire.Turn | undefined;

  constructor(caller: Caller, place: TurnPlace, object?: wire.Turn) {
    this.name = place.turn;
    this.session = place.session;
    this.#caller = caller;
    this.#place = place;
    this.#object = object;
  }

  /** The turn as it was read last; undefined before. */
  get object(): wire.Turn | undefined {
    return this.#object;
  }

  get uid(): string | undefined {
    return this.#object?.metadata.uid;
  }

  /** Reads the turn. */
  async get(limits: Limits = {}): Promise<wire.Turn> {
    const { value } = await this.#caller.json<wire.Turn>({ ...limits, method: 'GET', path: this.#path });
    return this.#noted(value);
  }

  /** Waits until the turn has ended, however, or asks for an approval. Rejects with a DeadlineExceeded; the turn goes on then. */
  async wait(limits: Limits = {}): Promise<wire.Turn> {
    const isOver = (turn: wire.Turn) => hasEnded(turn) || askedBy(this.#caller, turn) !== undefined;
    const { value } = await awaitEnd(this.#caller, this.#path, { ...limits, uid: this.uid, isOver });
    return this.#noted(value);
  }

  /** Returns what the turn asked when it was read last; undefined where it waited for no decision. */
  asks(): Approval | undefined {
    return this.#object && askedBy(this.#caller, this.#object);
  }

  /** Waits for the end. Rejects with a TurnFailed, TurnTimedOut or TurnCancelled where it is not Succeeded. */
  async result<T = unknown>({ onApproval, ...limits }: ResultOptions = {}): Promise<Result<T>> {
    const asked = new Set<string>();
    const look = async (turn: wire.Turn) => {
      const approval = askedBy(this.#caller, this.#noted(turn));
      if (!approval || asked.has(approval.requestId)) return;
      asked.add(approval.requestId);
      await onApproval?.(approval);
    };
    const answer = await awaitEnd(this.#caller, this.#path, { ...limits, uid: this.uid, look });
    const text = () => memberText(answer.text, 'status', 'output') ?? '';
    return this.resultOf<T>(answer.value, { value: answer.value.status?.output, text }, limits);
  }

  /**
   * Returns the result of a turn that has ended, with the output of the answer; reads an output that the answer leaves out.
   * @internal
   */
  async resultOf<T>(object: wire.Turn, given: Output, limits: Limits): Promise<Result<T>> {
    const failure = failureOf(this.#noted(object));
    if (failure) throw failure;
    const { value, text } = given.value === undefined ? await this.#readOutput(object, limits) : given;
    return new Result({ turn: this, phase: object.status?.phase ?? '', output: value as T, text });
  }

  /**
   * Yields the bytes of the output's JSON text as they come, for an output that is too large to be held. Leaving the loop ends the transfer. Rejects
   * with a ConnectionLost where it is cut.
   */
  async *streamOutput(limits: Limits = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const answer = await this.#caller.open({ ...limits, method: 'GET', path: `${this.#path}/output` });
    yield* answer.chunks();
  }

  /** Asks for the turn to be cancelled; one that has ended stays as it ended. */
  async cancel(limits: Limits = {}): Promise<wire.Turn> {
    const call = { method: 'POST', path: `${this.#path}/cancel`, query: { uid: this.uid }, body: '{}' } as const;
    const { value } = await this.#caller.json<wire.Turn>({ ...limits, ...call });
    return this.#noted(value);
  }

  /**
   * Yields what happens to the turn, to its end or deletion; an end that is past is told, too. Lines that the agent prints belong to the session: they are
   * in the session's events, and in `log()` after the end. Rejects with NotFound or UIDMismatch where the turn was deleted while no stream was there.
   */
  async *events({
    after = BEGINNING,
    ...options
  }: FollowOptions = {}): AsyncGenerator<TurnStreamEvent, void, undefined> {
    const path = pathOf('namespaces', this.#place.namespace, 'sessions', this.session, 'events');
    const { uid } = this;
    // A deletion before the stream began is not in it.
    const opened = async () => {
      const { metadata } = await this.get(options);
      if (uid !== undefined && metadata.uid !== uid) throw replaced('Turn', this.name);
    };
    const all = followSession(this.#caller, path, { ...options, after, opened });
    for await (const event of all) {
      if (event.type === 'session' || event.type === 'log' || event.type === 'dropped') continue;
      if (event.data.turn !== this.name) continue;
      yield event;
      if (event.type === 'deleted' || (event.type === 'turn' && isEnd(event.data.phase))) return;
    }
  }

  /** Returns a question of the turn by its id, as an event has it, without a request. */
  approval(requestId: string): Approval {
    return new Approval(this.#caller, this.#place, { requestId });
  }

  /** Lists the files that the turn has left. Rejects with TurnNotFinished before the end. */
  async artifacts(limits: Limits = {}): Promise<Artifact[]> {
    const { value } = await this.#caller.json<wire.ArtifactList>({
      ...limits,
      method: 'GET',
      path: `${this.#path}/artifacts`,
    });
    return value.items.map((facts) => new Artifact(this.#caller, this.#path, facts));
  }

  /** Returns an artifact by its name, without a request. */
  artifact(name: string): Artifact {
    return new Artifact(this.#caller, this.#path, { name });
  }

  /**
   * Returns the text that the agent printed beside its result, the last MiB. Rejects with TurnNotFinished before the end, and with NoLog where the text
   * was lost before it could be kept.
   */
  log(limits: Limits = {}): Promise<string> {
    return this.#caller.text({ ...limits, method: 'GET', path: `${this.#path}/log` });
  }

  get #path(): string {
    return turnPath(this.#place);
  }

  #noted(object: wire.Turn): wire.Turn {
    this.#object = objectOf(object, 'turn', this.#caller);
    return object;
  }

  /** Reads an output that is not part of the turn itself. */
  async #readOutput({ status }: wire.Turn, limits: Limits): Promise<Output> {
    if (status?.outputRef === undefined) return { value: undefined, text: () => '' };
    const { maxOutputBytes, parse } = this.#caller;
    const tooLarge = (bytes: number | string) =>
      new OutputTooLarge(
        `the output of turn ${this.name} has ${bytes} bytes, and maxOutputBytes is ${maxOutputBytes}; raise that, or read the output with streamOutput()`,
      );
    if ((status.outputBytes ?? 0) > maxOutputBytes) throw tooLarge(status.outputBytes ?? 0);
    const call = { ...limits, method: 'GET', path: `${this.#path}/output` } as const;
    const bytes = await this.#caller.call(call, (answer) => answer.bytes(maxOutputBytes, () => tooLarge('more')));
    const text = new TextDecoder().decode(bytes);
    return { value: parse(text), text: () => text };
  }
}

/** The turns of a session. */
export class Turns {
  readonly #caller: Caller;
  readonly #namespace: string;
  readonly #session: string;
  readonly #uid: () => string | undefined;

  /** `uid`: the session's, as far as it is known. */
  constructor(
    caller: Caller,
    { namespace, session }: Pick<TurnPlace, 'namespace' | 'session'>,
    uid: () => string | undefined,
  ) {
    this.#caller = caller;
    this.#namespace = namespace;
    this.#session = session;
    this.#uid = uid;
  }

  /** Gives the session a turn. It runs after those given before it. */
  async create(spec: TurnSpec, options: CreateOptions = {}): Promise<Turn> {
    const { value } = await created<wire.Turn>(this.#caller, this.#path, spec, options, {
      query: { uid: this.#uid() },
    });
    return this.#turnOf(value);
  }

  async get(name: string, limits: Limits = {}): Promise<Turn> {
    const turn = new Turn(this.#caller, this.#place(name));
    await turn.get(limits);
    return turn;
  }

  /** Yields the turns in the order of their names, without their inputs and outputs. */
  async *list({ signal, deadlineMs, ...options }: ListOptions = {}): AsyncGenerator<Turn, void, undefined> {
    const query = selection(options);
    for await (const turn of listed<wire.Turn>(this.#caller, this.#path, { query, signal, deadlineMs })) {
      yield this.#turnOf(turn);
    }
  }

  get #path(): string {
    return pathOf('namespaces', this.#namespace, 'sessions', this.#session, 'turns');
  }

  #place(turn: string): TurnPlace {
    return { namespace: this.#namespace, session: this.#session, turn };
  }

  #turnOf(object: wire.Turn): Turn {
    const { name } = objectOf(object, 'turn', this.#caller).metadata;
    return new Turn(this.#caller, this.#place(name), object);
  }
}
