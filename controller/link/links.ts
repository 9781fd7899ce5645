import type { DecoderCounters } from '../../core/frames/decode.ts';
import type { StoredPod } from '../../core/kube/builtin.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';
import { startedContainer } from '../world/pod-status.ts';
import type { MasterKeys } from './keys.ts';
import { Link } from './link.ts';

export interface LinksOptions {
  api: Pick<KubeApi, 'attach'>;
  clock: Clock;
  random: Random;
  log: Logger;
  keys: MasterKeys;
  epoch(): number;
  onChange(key: string): void;
  onLaterEpoch(epoch: number): void;
  lingerMs: number;
  /** Counters of refused frames, over all pods. */
  refused?: DecoderCounters | undefined;
}

/** Links of this leader, one per living pod, by the pod's uid. */
export class Links {
  readonly #options: LinksOptions;
  readonly #links = new Map<string, Link>();
  /** UID of a session → UIDs of its pods that have a link. */
  readonly #podsOf = new Map<string, Set<string>>();
  readonly #answers = { at: Number.NEGATIVE_INFINITY };
  #number = 0;

  constructor(options: LinksOptions) {
    this.#options = options;
  }

  get(podUID: string | undefined): Link | undefined {
    return podUID === undefined ? undefined : this.#links.get(podUID);
  }

  /** Returns the link of the session's pod; creates it if there is none. */
  open(pod: StoredPod, session: { key: string; uid: string; incarnation: number }): Link {
    const known = this.#links.get(pod.metadata.uid);
    if (known) return known;
    const { onChange, ...rest } = this.#options;
    const { name, uid } = pod.metadata;
    const link = new Link({
      ...rest,
      pod: { namespace: pod.metadata.namespace, name, uid },
      session: session.uid,
      incarnation: session.incarnation,
      nextNumber: () => ++this.#number,
      answers: this.#answers,
      onChange: () => {
        if (this.#links.get(uid) === link) onChange(session.key);
      },
    });
    this.#links.set(uid, link);
    this.#podsOf.set(session.uid, (this.#podsOf.get(session.uid) ?? new Set()).add(uid));
    return link;
  }

  /** Number of pods that are attached. */
  get attached(): number {
    return [...this.#links.values()].filter(({ isAttached }) => isAttached).length;
  }

  podChanged(pod: StoredPod, gone: boolean): void {
    if (gone) return;
    this.#links.get(pod.metadata.uid)?.podChanged({ scheduled: isDue(pod) });
  }

  close(podUID: string): void {
    const link = this.#links.get(podUID);
    if (!link) return;
    link.close();
    this.#links.delete(podUID);
    const others = this.#podsOf.get(link.session);
    others?.delete(podUID);
    if (others?.size === 0) this.#podsOf.delete(link.session);
  }

  /** Closes all links of the session except the one to `keep`. */
  closeOthers(sessionUID: string, keep?: string): void {
    for (const uid of [...(this.#podsOf.get(sessionUID) ?? [])]) if (uid !== keep) this.close(uid);
  }

  closeAll(): void {
    for (const uid of [...this.#links.keys()]) this.close(uid);
  }
}

/** Facts about its pod that a link needs when it begins. */
export function attachability(pod: StoredPod): { scheduled: boolean; running: boolean } {
  return { scheduled: isDue(pod), running: startedContainer(pod) };
}

/**
 * Reports whether the session's container starts now: the pod has a node, and its init containers have ended.
 * Restartable init containers (sidecars) go on running.
 */
function isDue({ spec, status }: StoredPod): boolean {
  const before = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy !== 'Always');
  const isDone = (name: string) => status?.initContainerStatuses?.find((one) => one.name === name)?.state?.terminated;
  return spec.nodeName !== undefined && before.every(({ name }) => isDone(name));
}
