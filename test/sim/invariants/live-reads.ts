import { type StoredSession, sessions } from '../../../core/resources/kinds.ts';
import type { ControllerCall } from '../observer.ts';
import type { Facts } from './facts.ts';

interface LiveRead {
  version: number;
  /** Time of the read of the session itself, which comes before that of its turns; virtual milliseconds. */
  at: number;
  held: boolean;
  /** True when the spec demanded or requested a suspension. */
  wished: boolean;
}

/** Reports whether a suspension may have made the call: garbage collection and caches list in pages. */
export const ofSuspension = ({ limit }: ControllerCall): boolean => limit === undefined;

/** Results of each controller's last live read of a session's turns, of the calls that count. */
export class LiveReads {
  readonly #facts: Facts;
  readonly #counts: (call: ControllerCall) => boolean;
  readonly #ofTurns = new Map<string, LiveRead>();
  /** Process and session → its last read of the session itself: when, and whether a suspension was set or asked for. */
  readonly #ofSessions = new Map<string, { at: number; held: boolean; wished: boolean }>();

  constructor(facts: Facts, counts: (call: ControllerCall) => boolean = () => true) {
    this.#facts = facts;
    this.#counts = counts;
  }

  called(call: ControllerCall): void {
    if (!this.#counts(call)) return;
    const { verb, resource, namespace, process, fieldSelector, name: read } = call;
    const name = /^spec\.session=([^,]+)/.exec(fieldSelector ?? '')?.[1];
    const isRead = verb === 'get' && resource === 'sessions';
    const of = isRead ? read : verb === 'list' && resource === 'turns' ? name : undefined;
    if (of === undefined) return;
    const key = `${process} ${namespace}/${of}`;
    const session = this.#facts.server.get(sessions, namespace, of);
    const { suspend, suspendRequest } = session?.spec ?? {};
    const wished =
      suspend === true || suspendRequest !== undefined || (session !== undefined && this.#facts.isToRestart(session));
    if (isRead) {
      this.#ofSessions.set(key, { at: this.#facts.kubelets.now, held: suspend === true, wished });
      return;
    }
    const before = this.#ofSessions.get(key);
    this.#ofTurns.set(key, {
      version: this.#facts.server.store.version,
      at: before?.at ?? this.#facts.kubelets.now,
      held: suspend === true || before?.held === true,
      wished: wished || before?.wished === true,
    });
  }

  of(process: string, { metadata }: StoredSession): LiveRead | undefined {
    return this.#ofTurns.get(`${process} ${metadata.namespace}/${metadata.name}`);
  }
}
