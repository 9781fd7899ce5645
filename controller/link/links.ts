import type { StoredPod } from '../../core/kube/builtin.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';
import { startedContainer } from '../decide/pod-status.ts';
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
}

/** The links of this leader, one for each living pod, by the pod's uid. */
export class Links {
  readonly #options: LinksOptions;
  readonly #links = new Map<string, Link>();
  #number = 0;

  constructor(options: LinksOptions) {
    this.#options = options;
  }

  get(podUID: string | undefined): Link | undefined {
    return podUID === undefined ? undefined : this.#links.get(podUID);
  }

  /** The link of the session's pod, opened if there is none. */
  open(pod: StoredPod, session: { key: string; uid: string; incarnation: number }): Link {
    const known = this.#links.get(pod.metadata.uid);
    if (known) return known;
    const { onChange, ...rest } = this.#options;
    const { name, uid } = pod.metadata;
    const link = new Link({
      ...rest,
      pod: { namespace: pod.metadata.namespace as string, name, uid },
      session: session.uid,
      incarnation: session.incarnation,
      nextNumber: () => ++this.#number,
      onChange: () => {
        if (this.#links.get(uid) === link) onChange(session.key);
      },
    });
    this.#links.set(uid, link);
    return link;
  }

  podChanged(pod: StoredPod, gone: boolean): void {
    if (gone) return;
    this.#links.get(pod.metadata.uid)?.podChanged({ scheduled: pod.spec.nodeName !== undefined });
  }

  close(podUID: string): void {
    this.#links.get(podUID)?.close();
    this.#links.delete(podUID);
  }

  /** Closes every link of the session but the one to keep. */
  closeOthers(sessionUID: string, keep?: string): void {
    for (const [uid, link] of [...this.#links]) {
      if (link.session === sessionUID && uid !== keep) this.close(uid);
    }
  }

  closeAll(): void {
    for (const uid of [...this.#links.keys()]) this.close(uid);
  }
}

/** What a link must know of its pod when it begins. */
export function attachability(pod: StoredPod): { scheduled: boolean; running: boolean } {
  return { scheduled: pod.spec.nodeName !== undefined, running: startedContainer(pod) };
}
