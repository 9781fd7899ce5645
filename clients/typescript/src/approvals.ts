import type * as wire from './generated/wire.ts';
import { created, objectOf, pathOf } from './objects.ts';
import type { Caller, Limits } from './retry.ts';

export interface DecideOptions extends Limits {
  /** Why, in words; the agent gets it too. */
  note?: string | undefined;
  /** Further data for the agent: any JSON, up to 16 KiB. */
  response?: unknown;
  /** Default: a random one. */
  idempotencyKey?: string | undefined;
}

/** The known fields of a question. */
export interface Question {
  requestId: string;
  prompt?: string | undefined;
  payload?: unknown;
  since?: string | undefined;
}

/** Where a turn stands. */
export interface TurnPlace {
  namespace: string;
  session: string;
  turn: string;
}

export const turnPath = ({ namespace, session, turn }: TurnPlace) =>
  pathOf('namespaces', namespace, 'sessions', session, 'turns', turn);

/** The question of a turn, by its id. */
export class Approval {
  readonly requestId: string;
  /** The question. Absent, as the next two, where only the id is known. */
  readonly prompt: string | undefined;
  /** The agent's data for the question; any JSON. */
  readonly payload: unknown;
  /** Time of the question, RFC 3339. */
  readonly since: string | undefined;
  /** Name of the turn that asks. */
  readonly turn: string;
  /** Name of its session. */
  readonly session: string;
  readonly #caller: Caller;
  readonly #path: string;

  constructor(caller: Caller, place: TurnPlace, { requestId, prompt, payload, since }: Question) {
    this.requestId = requestId;
    this.prompt = prompt;
    this.payload = payload;
    this.since = since;
    this.turn = place.turn;
    this.session = place.session;
    this.#caller = caller;
    this.#path = `${turnPath(place)}/approvals`;
  }

  /** Lets the agent go on with a yes. The first decision counts: where there is another, it rejects with AlreadyDecided, which says whose. */
  approve(options: DecideOptions = {}): Promise<wire.Approval> {
    return this.#decide('Approve', options);
  }

  /** Lets the agent go on with a no. */
  deny(options: DecideOptions = {}): Promise<wire.Approval> {
    return this.#decide('Deny', options);
  }

  async #decide(decision: 'Approve' | 'Deny', { note, response, ...options }: DecideOptions): Promise<wire.Approval> {
    const spec = { requestId: this.requestId, decision, note, response };
    const { value } = await created<wire.Approval>(this.#caller, this.#path, spec, options);
    return objectOf(value, 'decision', this.#caller);
  }
}

/** Returns the question that the turn waits with; undefined where it waits for no decision. */
export function askedBy(caller: Caller, turn: wire.Turn): Approval | undefined {
  const { phase, approval } = turn.status ?? {};
  if (phase !== 'AwaitingApproval' || !approval || approval.decided) return undefined;
  const { name, namespace } = turn.metadata;
  return new Approval(
    caller,
    { namespace, session: turn.spec.session, turn: name },
    { ...approval, requestId: approval.requestId ?? approval.id },
  );
}
