import { type StoredSession, sessions } from '../../../core/resources/kinds.ts';
import type { ControllerCall } from '../observer.ts';
import type { Facts } from './facts.ts';

interface Look {
  version: number;
  held: boolean;
  /** Somebody has asked for the suspension. */
  wished: boolean;
}

/** What each controller saw when it last looked for the turns of a session, live. */
export class Looks {
  readonly #facts: Facts;
  readonly #looks = new Map<string, Look>();
  /** Whether the suspension was wished when the session itself was read, which comes before its turns. */
  readonly #wished = new Map<string, boolean>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  called({ verb, resource, namespace, process, fieldSelector, name: read }: ControllerCall): void {
    const name = /^spec\.session=([^,]+)/.exec(fieldSelector ?? '')?.[1];
    const isRead = verb === 'get' && resource === 'sessions';
    const of = isRead ? read : verb === 'list' && resource === 'turns' ? name : undefined;
    if (of === undefined) return;
    const key = `${process} ${namespace}/${of}`;
    const { suspend, suspendRequest } = this.#facts.server.get(sessions, namespace, of)?.spec ?? {};
    const wished = suspend === true || suspendRequest !== undefined;
    if (isRead) {
      this.#wished.set(key, wished);
      return;
    }
    this.#looks.set(key, {
      version: this.#facts.server.store.version,
      held: suspend === true,
      wished: wished || this.#wished.get(key) === true,
    });
  }

  of(process: string, { metadata }: StoredSession): Look | undefined {
    return this.#looks.get(`${process} ${metadata.namespace}/${metadata.name}`);
  }
}
