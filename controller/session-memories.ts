import type { StoredPod } from '../core/kube/builtin.ts';
import { LABEL_SESSION_UID } from '../core/resources/names.ts';
import type { StateRef } from '../core/resources/schema.ts';
import type { Watches } from './caches/watches.ts';
import { emptyMemory, learn } from './observed/memory.ts';
import { sessionNameOf } from './observed/session-pods.ts';
import type { CachedSession, SessionMemory } from './observed/world.ts';

/** The memories of the sessions that this leader has reconciled, by `namespace/name`. */
export class SessionMemories {
  readonly #memories = new Map<string, { uid: string; memory: SessionMemory }>();

  /** The memory of the session, a new one where it has none. `isLeaderReady`: `Leader.isReady`. */
  of(key: string, { metadata, status }: CachedSession, isLeaderReady: () => boolean): SessionMemory {
    let entry = this.#memories.get(key);
    if (!entry) {
      // A session without a status has no turn with an index, and no earlier leader can give one any more.
      const knowsTurns = status?.phase === undefined && isLeaderReady();
      entry = { uid: metadata.uid, memory: emptyMemory(knowsTurns) };
      this.#memories.set(key, entry);
    }
    return entry.memory;
  }

  /** Forgets the former session of the name, if there was one. Returns its uid. `present`: uid of the session that has the name now. */
  forgetFormer(key: string, present: string | undefined): string | undefined {
    const known = this.#memories.get(key);
    if (!known || known.uid === present) return undefined;
    this.#memories.delete(key);
    return known.uid;
  }

  get watches(): Watches {
    return { pod: (pod, gone) => gone && this.#podGone(pod) };
  }

  /** Remembers how the pod of a session was last seen: a kubelet may report its end and remove it between two reconciles. */
  #podGone(pod: StoredPod): void {
    const { namespace, labels } = pod.metadata;
    const known = this.#memories.get(`${namespace}/${sessionNameOf(pod)}`);
    if (known && known.uid === labels?.[LABEL_SESSION_UID]) learn(known.memory, { fact: 'PodGone', pod });
  }

  /** Last state of the session that this leader has committed; undefined: none. */
  committed(key: string): StateRef | undefined {
    return this.#memories.get(key)?.memory.committed;
  }

  /** Time from which a failed suspension of the session may be retried, milliseconds since the epoch. */
  suspendAgainAt(key: string): number | undefined {
    return this.#memories.get(key)?.memory.incarnation.suspensionFailed?.againAt;
  }
}
