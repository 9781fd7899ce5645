import { addressOf } from './address.ts';
import { pauseIfEarly } from './await-end.ts';
import { type Clock, systemClock } from './clock.ts';
import { hasEnded } from './ends.ts';
import { ConfigurationError, DeadlineExceeded } from './errors.ts';
import { type FollowOptions, follow, type NamespaceStreamEvent } from './follow.ts';
import { RELEASE } from './generated/release.ts';
import type * as wire from './generated/wire.ts';
import { type Fetch, Http } from './http.ts';
import { memberText, parseExact } from './numbers.ts';
import { type CreateOptions, created, objectOf, pathOf } from './objects.ts';
import { Caller, type Json, type Timing } from './retry.ts';
import { Session, Sessions } from './sessions.ts';
import { type TokenSource, tokenOf } from './token.ts';
import { Result, type ResultOptions, Turn } from './turns.ts';

export interface BerthOptions {
  /** URL of the HTTP API, before `/v1`. Default: BERTH_SERVER, else the embedded cluster of this user. */
  server?: string | undefined;
  /** Default: the file that BERTH_TOKEN_FILE names, else the token of this pod at /var/run/secrets/berth/token. */
  token?: TokenSource | undefined;
  /** Default: that of the pod whose token it is, else `default`. */
  namespace?: string | undefined;
  /** Default: the global `fetch`. Give one for a private CA or a proxy. */
  fetch?: Fetch | undefined;
  /** Limit of a call with all its repeats, milliseconds. Default: five minutes. */
  deadlineMs?: number | undefined;
  /** Limits and waits of single tries. */
  timing?: Partial<Timing> | undefined;
  /** Largest output that is read as a whole, bytes. Default: 16 MiB, twice what the server keeps. */
  maxOutputBytes?: number | undefined;
  /** Lets the token go over http:// to other machines. Default: false. */
  allowPlainText?: boolean | undefined;
  /** Parser of JSON. Default: exact numbers, as `Result.output` says. */
  parse?: ((text: string) => unknown) | undefined;
  /** Handler of the HTTP status of every answer, or of the error that came instead; a repeat is another request. */
  onRequest?: ((outcome: number | Error) => void) | undefined;
  /** Source of time. Default: that of the machine. */
  clock?: Clock | undefined;
}

export type RunSpec = wire.RunCreate['spec'];

const TIMING: Timing = {
  attemptMs: 30_000,
  waitMs: 30_000,
  silenceMs: 40_000,
  unansweredMs: 10_000,
  baseMs: 200,
  maxMs: 5_000,
};
const DEADLINE_MS = 300_000;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** A run that has succeeded: a session of its own for one input. */
export class Run<T = unknown> extends Result<T> {
  readonly session: Session;

  constructor(session: Session, result: Result<T>) {
    super(result);
    this.session = session;
  }
}

/** Client of Berth's HTTP API. It holds no connection by itself, and there is nothing to close. */
export class Berth {
  readonly server: string;
  readonly namespace: string;
  readonly sessions: Sessions;
  readonly #caller: Caller;

  /** Throws a ConfigurationError where the address, the token or an option cannot be used. */
  constructor(options: BerthOptions = {}) {
    const {
      fetch = globalThis.fetch,
      clock = systemClock,
      deadlineMs = DEADLINE_MS,
      maxOutputBytes = MAX_OUTPUT_BYTES,
    } = options;
    const { server, token, namespace } = addressOf(options, process.env);
    const timing = { ...TIMING, ...options.timing };
    for (const [name, value] of Object.entries({ deadlineMs, maxOutputBytes, ...timing })) {
      if (!(value > 0)) throw new ConfigurationError(`${name} is ${value}; it is a number above 0`);
    }
    const headers = async () => ({
      authorization: `Bearer ${await tokenOf(token)}`,
      'user-agent': `berth-client/${RELEASE}`,
    });
    this.server = server;
    this.namespace = namespace;
    this.#caller = new Caller({
      http: new Http({ server, headers, fetch, clock }),
      clock,
      timing,
      token,
      deadlineMs,
      maxOutputBytes,
      parse: options.parse ?? parseExact,
      onRequest: options.onRequest ?? (() => {}),
    });
    this.sessions = new Sessions(this.#caller, namespace);
  }

  /** Releases of this client and, once there was an answer, of the API. Others than one and the same may not know all of each other. */
  get releases(): { client: string; server: string | undefined } {
    return { client: RELEASE, server: this.#caller.release };
  }

  /** Returns a session of this name, without a request. */
  session(name: string): Session {
    return new Session(this.#caller, { namespace: this.namespace, name });
  }

  /** Yields what happens to all sessions and turns of the namespace, until it is left or aborted. */
  events(options: FollowOptions = {}): AsyncGenerator<NamespaceStreamEvent, void, undefined> {
    const path = pathOf('namespaces', this.namespace, 'events');
    return follow(this.#caller, path, options) as AsyncGenerator<NamespaceStreamEvent, void, undefined>;
  }

  /**
   * Creates a session, runs one input in it and waits for the result. Rejects with a TurnFailed, TurnTimedOut or TurnCancelled where the
   * run is not Succeeded. `deadlineMs` is the limit of the whole wait; the run goes on when it is over.
   */
  async run<T = unknown>(spec: RunSpec, options: CreateOptions & ResultOptions = {}): Promise<Run<T>> {
    const { deadlineMs = Number.POSITIVE_INFINITY, signal, onApproval, ...names } = options;
    const { clock } = this.#caller;
    const end = clock.monotonic() + deadlineMs;
    const answer = await this.#begun(spec, { ...names, signal }, end);
    const { session: ofRun, turn: object } = answer.value;
    const { name } = objectOf(ofRun, 'run', this.#caller).metadata;
    const session = new Session(this.#caller, { namespace: this.namespace, name }, ofRun);
    const turn = new Turn(
      this.#caller,
      { namespace: this.namespace, session: name, turn: object.metadata.name },
      object,
    );
    const limits = { signal, deadlineMs: Math.max(1, end - clock.monotonic()) };
    if (!hasEnded(object)) return new Run(session, await turn.result<T>({ ...limits, onApproval }));
    const text = () => memberText(answer.text, 'output') ?? '';
    return new Run(session, await turn.resultOf<T>(object, { value: answer.value.output, text }, limits));
  }
  /**
   * Creates a run; resolves with the answer that has its turn. Until the cluster has taken the run up there is none that could be waited for: the same
   * request with the same key waits on. `end` is a time of the clock.
   */
  async #begun(
    spec: RunSpec,
    { idempotencyKey = globalThis.crypto.randomUUID(), signal, ...names }: CreateOptions,
    end: number,
  ): Promise<Json<BegunRun>> {
    const { clock, timing } = this.#caller;
    const path = pathOf('namespaces', this.namespace, 'runs');
    for (let early = 0; ; ) {
      const asked = clock.monotonic();
      const leftMs = end - asked;
      if (leftMs <= 0) {
        const error = new DeadlineExceeded(`POST ${path}: the run has not been taken up in time, and goes on`);
        error.idempotencyKey = idempotencyKey;
        throw error;
      }
      const waitMs = Math.ceil(Math.min(timing.waitMs, leftMs));
      const answer = await created<wire.Run>(
        this.#caller,
        path,
        spec,
        { ...names, idempotencyKey, signal, deadlineMs: Math.min(this.#caller.deadlineMs, leftMs) },
        { query: { wait: `${waitMs}ms` }, waitMs },
      );
      if (answer.value.turn) return answer as Json<BegunRun>;
      early = await pauseIfEarly(this.#caller, { early, asked, waitMs, end, signal });
    }
  }
}

type BegunRun = wire.Run & { turn: wire.Turn };
