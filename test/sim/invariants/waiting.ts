import { isDeepStrictEqual } from 'node:util';
import {
  type StoredSession,
  type StoredSessionClass,
  type StoredTurn,
  sessions,
  turns,
} from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import type { ControllerCall, Observer } from '../observer.ts';
import { CLASSES, type Facts, SESSIONS } from './facts.ts';
import { Pasts } from './past.ts';

/** Sessions that certainly wait for a slot in a controller's view. They are the measure for the order of the queue. */
export class Waiting implements Partial<Observer> {
  readonly #facts: Facts;
  readonly #exists = new Pasts<boolean>();
  /** Object → the controller process that wrote its present version; absent when no controller did. */
  readonly #writers = new Map<string, string>();
  /** Session → the version since which it has waited with the same rank, by its priority and age. */
  readonly #since = new Map<string, { version: number; rank: string }>();
  /** Class → the version since which it has had its present rules. */
  readonly #rules = new Map<string, number>();
  /** Process and session → the process's calls for the session that are under way. */
  readonly #underWay = new Map<string, Set<ControllerCall>>();
  /** Process and session whose last such call failed. The session does not count as queued until one succeeds. */
  readonly #failed = new Set<string>();
  /** Process and session → the time at which the session is back in the queue after such a failure, virtual milliseconds. */
  readonly #backAt = new Map<string, number>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  sent: Observer['sent'] = (call) => {
    const key = this.#subject(call);
    if (key) this.#underWay.set(key, (this.#underWay.get(key) ?? new Set()).add(call));
  };

  answered: Observer['answered'] = (call, error) => {
    const key = this.#subject(call);
    if (!key) return;
    this.#underWay.get(key)?.delete(call);
    if (error) this.#failed.add(key);
    // The decision that puts the session back follows the last of several reads.
    else if (this.#failed.delete(key) || this.#backAt.get(key) === call.sentAt())
      this.#backAt.set(key, this.#facts.kubelets.now);
  };

  committed: Observer['committed'] = (change) => {
    const { uid = '' } = change.object.metadata;
    const call = this.#facts.callBehind(change);
    if (call) this.#writers.set(uid, call.process);
    else this.#writers.delete(uid);
    if (change.storage === CLASSES && haveRulesChanged(change))
      this.#rules.set(change.object.metadata.name, change.version);
    if (change.storage !== SESSIONS) return;
    this.#exists.becomes(uid, change.type !== 'DELETED', this.#facts.kubelets.now);
    const { spec, status } = change.object as unknown as StoredSession;
    const rank = status?.queue && !status.podName ? `${spec.priority ?? 0} ${status.queue.since}` : '';
    if (this.#since.get(uid)?.rank !== rank) this.#since.set(uid, { version: change.version, rank });
  };

  /**
   * Reports whether a session that is in the queue in the view of the call's process has certainly been there, with its
   * present rank, since before this version of a session was written.
   */
  hasWaitedSince({ process }: ControllerCall, { metadata }: StoredSession, version: number): boolean {
    const since = this.#since.get(metadata.uid)?.version ?? Number.POSITIVE_INFINITY;
    const backAt = this.#backAt.get(`${process} ${metadata.namespace}/${metadata.name}`) ?? Number.NEGATIVE_INFINITY;
    return since < version && backAt < this.#facts.sessionCameAt(version);
  }

  /** Returns the sessions that are certainly in the queue in the view of the call's process; some may be left out. */
  seenBy(call: ControllerCall): StoredSession[] {
    const { server } = this.#facts;
    const all = server.list(turns);
    return server.list(sessions).filter((session) => {
      const { metadata, spec, status } = session;
      const key = `${call.process} ${metadata.namespace}/${metadata.name}`;
      const own = all.filter(({ metadata: { namespace }, spec: { session: name } }) => {
        return namespace === metadata.namespace && name === metadata.name;
      });
      return (
        status?.queue?.reason === 'AtCapacity' &&
        !status.podName &&
        !metadata.deletionTimestamp &&
        status.observedGeneration === metadata.generation &&
        !spec.suspend &&
        // A class that was changed since may be invalid, or refuse the session's settings.
        (this.#rules.get(spec.class) ?? 0) <= Number(metadata.resourceVersion) &&
        // A session with a failed start tries again later.
        !status.startFailures &&
        !this.#mayWaitForGroup(call, session) &&
        !own.some((turn) => (turn.status?.attempt ?? 0) > 0 && !isTerminal(turn.status?.phase)) &&
        !this.#underWay.get(key)?.size &&
        !this.#failed.has(key) &&
        this.#isKnown(call, 'sessions', session) &&
        own.every((turn) => this.#isKnown(call, 'turns', turn))
      );
    });
  }

  /** Reports whether the group's limit may be reserved for other sessions, with one turn for each session at most. */
  #mayWaitForGroup(call: ControllerCall, { spec }: StoredSession): boolean {
    const group = spec.concurrencyGroup?.name;
    if (group === undefined) return false;
    const members = this.existing(call).filter((other) => {
      return other.metadata.namespace === call.namespace && other.spec.concurrencyGroup?.name === group;
    });
    return members.length > Math.min(...members.map((member) => member.spec.concurrencyGroup?.limit ?? 0));
  }

  /** Returns the sessions that existed in the view of the process when it made the call, or `agoMs` before. */
  existing(call: ControllerCall, agoMs = 0): StoredSession[] {
    const known = this.#facts.knewUntil(call, ['sessions'], agoMs);
    return [...this.#exists.everBeen(true, known)].map((uid) => this.#facts.sessions.get(uid) as StoredSession);
  }

  #isKnown({ process, knew }: ControllerCall, plural: string, { metadata }: StoredSession | StoredTurn): boolean {
    return Number(metadata.resourceVersion) <= knew(plural) || this.#writers.get(metadata.uid) === process;
  }

  /** Returns the process and the session of a call; undefined when the call is for no session. */
  #subject({ process, resource, namespace, name, fieldSelector, object }: ControllerCall): string | undefined {
    const { server } = this.#facts;
    if (resource === 'sessions' && name) return `${process} ${namespace}/${name}`;
    if (resource !== 'turns') return undefined;
    // A write of the status carries no spec.
    const { spec = server.get(turns, namespace, name)?.spec } = (object ?? {}) as Partial<StoredTurn>;
    const session = /^spec\.session=([^,]+)/.exec(fieldSelector ?? '')?.[1] ?? spec?.session;
    return session && `${process} ${namespace}/${session}`;
  }
}

/** Reports whether the class was deleted, or anything of it but its limits has changed. */
function haveRulesChanged({ type, previous, object }: Parameters<Observer['committed']>[0]): boolean {
  const rulesOf = (one: typeof previous) => {
    const { limits: _, ...rules } = (one as unknown as StoredSessionClass | undefined)?.spec ?? {};
    return rules;
  };
  return type === 'DELETED' || !isDeepStrictEqual(rulesOf(previous), rulesOf(object));
}
