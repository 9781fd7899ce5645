import { namespaces, pods } from '../../../core/kube/resources.ts';
import { type StoredSession, sessionclasses, sessions } from '../../../core/resources/kinds.ts';
import { LABEL_CLASS, LABEL_SESSION_UID } from '../../../core/resources/names.ts';
import { storageOf } from '../api/server.ts';
import type { ControllerCall, Observer } from '../observer.ts';
import { CLASSES, type Facts } from './facts.ts';
import type { Limits } from './invariant.ts';
import { Pasts } from './past.ts';

const NAMESPACES = storageOf(namespaces);

/** The running slots: which are taken, which are asked for, and the history of their limits. */
export class Slots implements Partial<Observer> {
  readonly #facts: Facts;
  readonly #maxRunning: number;
  readonly #limits = new Pasts<number>();
  /** Process and pod → the call by which the process first asked for the slot. */
  readonly #asked = new Map<string, ControllerCall>();

  constructor(facts: Facts, { maxRunning = Number.POSITIVE_INFINITY }: Limits) {
    this.#facts = facts;
    this.#maxRunning = maxRunning;
  }

  /** Returns the pod for which the call asks a slot; undefined when the call asks for none. */
  static askedBy(call: ControllerCall, session: StoredSession | undefined): string | undefined {
    const { verb, resource, object, namespace } = call;
    if (verb !== 'replace' || resource !== 'sessions' || !session || session.status?.podName) return undefined;
    const { podName } = (object as StoredSession).status ?? {};
    return podName && `${namespace}/${podName}`;
  }

  sent: Observer['sent'] = (call) => {
    const pod = Slots.askedBy(call, this.#facts.server.get(sessions, call.namespace, call.name));
    const key = `${call.process} ${pod}`;
    if (pod && !this.#asked.has(key)) this.#asked.set(key, call);
  };

  committed: Observer['committed'] = ({ storage }) => {
    if (storage !== NAMESPACES && storage !== CLASSES) return;
    const { server, kubelets } = this.#facts;
    for (const { metadata, spec } of server.list(sessionclasses)) {
      const most = spec.limits?.maxRunning ?? Number.POSITIVE_INFINITY;
      this.#limits.becomes(ofClass(metadata.name), most, kubelets.now);
      for (const namespace of server.list(namespaces)) {
        const selected = (spec.limits?.namespaces ?? []).filter(({ selector }) =>
          Object.entries(selector.matchLabels ?? {}).every(
            ([key, value]) => namespace.metadata.labels?.[key] === value,
          ),
        );
        const lowest = Math.min(Number.POSITIVE_INFINITY, ...selected.map((one) => one.maxRunning));
        this.#limits.becomes(ofClassIn(metadata.name, namespace.metadata.name), lowest, kubelets.now);
      }
    }
  };

  /**
   * Returns the first call by which the process asked for the slot; it reserves the slot until its outcome is known.
   */
  asked(process: string, pod: string): ControllerCall | undefined {
    return this.#asked.get(`${process} ${pod}`);
  }

  /** Returns all limits of a scope that have held since then. */
  limits(what: string, since: number): number[] {
    return what === EVERYTHING ? [this.#maxRunning] : this.#limits.since(what, since);
  }

  /** Returns the slots taken by admitted sessions and by pods that are not gone: pod → the scopes that it counts in. */
  taken(): Map<string, readonly string[]> {
    const { server } = this.#facts;
    const taken = new Map<string, readonly string[]>();
    const take = (namespace = '', pod = '', name = '') => taken.set(`${namespace}/${pod}`, scopes(name, namespace));
    for (const { metadata, spec, status } of server.list(sessions)) {
      if (status?.podName) take(metadata.namespace, status.podName, spec.class);
    }
    for (const { metadata } of server.list(pods)) {
      if (metadata.labels?.[LABEL_SESSION_UID] !== undefined)
        take(metadata.namespace, metadata.name, metadata.labels[LABEL_CLASS]);
    }
    return taken;
  }
}

const EVERYTHING = 'the installation';
const ofClass = (name: string) => `class ${name}`;
const ofClassIn = (name: string, namespace: string) => `class ${name} in ${namespace}`;

/** Returns the scopes whose limits a session counts in, the widest first. */
export const scopes = (sessionClass: string, namespace: string): readonly string[] => [
  EVERYTHING,
  ofClass(sessionClass),
  ofClassIn(sessionClass, namespace),
];

/** Returns the time up to which a controller knew all limits when it sent the call. */
export const knewLimits = (facts: Facts, call: ControllerCall): number =>
  facts.knewUntil(call, ['sessionclasses', 'namespaces']);
