import type { StoredPod } from '../../core/kube/builtin.ts';
import { LABEL_INCARNATION, LABEL_SESSION_UID } from '../../core/resources/names.ts';
import type { Watches } from '../caches/watches.ts';
import { startedContainer } from '../observed/pod-status.ts';
import { isFromPool, sessionNameOf } from '../observed/session-pods.ts';
import { Allowances } from './allowance.ts';
import { AttachLimit } from './attach-limit.ts';
import { HeldBytes } from './held-bytes.ts';
import { Link } from './link.ts';
import { LogReader } from './log-reader.ts';
import type { LinkOptions } from './options.ts';
import { Silences } from './silences.ts';

export interface LinksOptions
  extends Pick<
    LinkOptions,
    'api' | 'clock' | 'random' | 'log' | 'keys' | 'epoch' | 'onLaterEpoch' | 'lingerMs' | 'refused' | 'counters'
  > {
  onChange(owner: LinkOwner): void;
  /** Handler of a pod that prints more on its stdout than is read, called once for each episode. */
  onThrottled?(owner: LinkOwner, pod: string): void;
  /** Attaches to the pods of one node that may be opened at once. */
  attachesPerNode: number;
  /** Reports whether somebody waits for what the session's pod does next. */
  isWaitedFor(session: LinkOwner): boolean;
}

/** The session of a link's pod; for a pool's pod, whose `uid` is empty, the key of the pool. */
export interface LinkOwner {
  key: string;
  uid: string;
  incarnation: number;
}

/** Links of this leader, one per living pod, by the pod's uid. */
export class Links {
  readonly #options: LinksOptions;
  readonly #links = new Map<string, Link>();
  /** UID of a pod → its owner. */
  readonly #owners = new Map<string, LinkOwner>();
  /** UID of a session → UIDs of its pods that have a link. */
  readonly #podsOf = new Map<string, Set<string>>();
  readonly #answers = { at: Number.NEGATIVE_INFINITY };
  readonly #silences: Silences;
  readonly #limit: AttachLimit;
  readonly #logs: LogReader;
  readonly #held: HeldBytes;
  readonly #allowances: Allowances;
  #number = 0;

  constructor(options: LinksOptions) {
    this.#options = options;
    this.#silences = new Silences(options.clock);
    this.#limit = new AttachLimit(options.attachesPerNode, options.clock);
    this.#logs = new LogReader(options.clock);
    this.#allowances = new Allowances(options.clock);
    this.#held = new HeldBytes(options.clock, { counters: options.counters });
  }

  get(podUID: string | undefined): Link | undefined {
    return podUID === undefined ? undefined : this.#links.get(podUID);
  }

  /** Returns the link of the pod; creates it if there is none. */
  open(pod: StoredPod, session: LinkOwner): Link {
    const known = this.#links.get(pod.metadata.uid);
    if (known) return known;
    const { onChange, onThrottled, isWaitedFor, ...rest } = this.#options;
    const { name, uid } = pod.metadata;
    this.#owners.set(uid, session);
    const link = new Link({
      ...rest,
      pod: { namespace: pod.metadata.namespace, name, uid },
      session: session.uid,
      incarnation: session.incarnation,
      nextNumber: () => ++this.#number,
      answers: this.#answers,
      silences: this.#silences,
      logs: this.#logs,
      held: this.#held,
      allowances: this.#allowances,
      limit: this.#limit,
      priority: () => {
        const owner = this.#owners.get(uid);
        if (owner?.uid === '') return 'Unclaimed';
        return owner && isWaitedFor(owner) ? 'WaitedFor' : 'AtRest';
      },
      onChange: () => {
        const owner = this.#links.get(uid) === link ? this.#owners.get(uid) : undefined;
        if (owner) onChange(owner);
      },
      onThrottled: () => {
        const owner = this.#owners.get(uid);
        if (owner) onThrottled?.(owner, name);
      },
    });
    this.#links.set(uid, link);
    this.#podsOf.set(session.uid, (this.#podsOf.get(session.uid) ?? new Set()).add(uid));
    return link;
  }

  /** Notes a claim that is about to be sent; see `Link.claiming`. There may be no link yet. */
  claiming(podUID: string, session: string): () => void {
    return this.#links.get(podUID)?.claiming(session) ?? (() => {});
  }

  /** Gives the link of a claimed pod, if there is one yet, to its session, after the claim's answer or the watch's event; see `Link.assign`. */
  assign(podUID: string, session: LinkOwner): void {
    const link = this.#links.get(podUID);
    if (link?.session !== '') return;
    this.#forget(podUID, link.session);
    this.#owners.set(podUID, session);
    this.#podsOf.set(session.uid, (this.#podsOf.get(session.uid) ?? new Set()).add(podUID));
    link.assign(session.uid, session.incarnation);
  }

  /** Asks again whether somebody waits for the pod's session, which decides when the pod is attached. */
  reconsider(podUID: string): void {
    this.#links.get(podUID)?.reconsider();
  }

  /** Number of pods that are attached. */
  get attached(): number {
    return [...this.#links.values()].filter(({ isAttached }) => isAttached).length;
  }

  get watches(): Watches {
    return { pod: (pod, gone) => this.podChanged(pod, gone) };
  }

  podChanged(pod: StoredPod, gone: boolean): void {
    const { uid, name, namespace, labels = {} } = pod.metadata;
    const session = labels[LABEL_SESSION_UID] ?? '';
    if (gone) {
      // The link of a session's pod is closed by its session, which may still want the pod's last word.
      if (this.#links.get(uid)?.session === '') this.close(uid);
      return;
    }
    if (session !== '' && isFromPool(name)) {
      const owner = {
        key: `${namespace}/${sessionNameOf(pod)}`,
        uid: session,
        incarnation: Number(labels[LABEL_INCARNATION]),
      };
      this.assign(uid, owner);
    }
    const deleted = pod.metadata.deletionTimestamp !== undefined;
    this.#links.get(pod.metadata.uid)?.podChanged({ scheduled: isDue(pod), deleted, node: pod.spec.nodeName });
  }

  close(podUID: string): void {
    const link = this.#links.get(podUID);
    if (!link) return;
    link.close();
    this.#links.delete(podUID);
    this.#owners.delete(podUID);
    this.#forget(podUID, link.session);
  }

  #forget(podUID: string, session: string): void {
    const others = this.#podsOf.get(session);
    others?.delete(podUID);
    if (others?.size === 0) this.#podsOf.delete(session);
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
export function attachability(pod: StoredPod): { scheduled: boolean; running: boolean; node: string | undefined } {
  return { scheduled: isDue(pod), running: startedContainer(pod), node: pod.spec.nodeName };
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
