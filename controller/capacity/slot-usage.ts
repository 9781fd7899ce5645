import { type Space, spaceOf, Tally } from './tally.ts';

/** A holder of a slot: an admitted session and its pod, which count once, or a pod whose session is unknown. */
export interface Holder extends Space {
  /** Key `namespace/name` of the session, or of the pod where its session is unknown. */
  name: string;
  /** Start of the hold, milliseconds since the epoch. */
  since: number;
}

/** Claims to a slot. The first that is known describes the holder. */
const SOURCES = ['session', 'reservation', 'pod'] as const;
type Source = (typeof SOURCES)[number];

interface Entry {
  holder: Holder;
  claims: Partial<Record<Source, Holder>>;
}

/**
 * Holders of slots, by the name of the pod: an admitted session, a reservation of this leader, or a pod that is not gone
 * yet. The three count once where they mean the same pod. Counts are kept up with every change, never computed anew.
 */
export class SlotUsage {
  readonly #entries = new Map<string, Entry>();
  readonly #tally = new Tally();
  /** Key `namespace/name` of a session → the pod that its status names. */
  readonly #podOf = new Map<string, string>();
  readonly #onFreed: () => void;
  readonly #onReleased: (pod: string) => void;

  /** `onFreed` is called after a slot has become free, `onReleased` after one of several claims to a pod's slot has ended. */
  constructor(onFreed: () => void, onReleased: (pod: string) => void = () => {}) {
    this.#onFreed = onFreed;
    this.#onReleased = onReleased;
  }

  get tally(): Tally {
    return this.#tally;
  }

  /** Updates a session: with the pod that its status names, or with none. `pod` is `namespace/name`. */
  session(key: string, admitted: { pod: string; holder: Holder } | undefined): void {
    const before = this.#podOf.get(key);
    // The new claim comes first: a session that changes its pod is never counted as having none.
    if (admitted) {
      this.#podOf.set(key, admitted.pod);
      this.#claim(admitted.pod, 'session', admitted.holder);
    } else {
      this.#podOf.delete(key);
    }
    if (before !== undefined && before !== admitted?.pod) this.#drop(before, 'session');
  }

  /** Claims a slot for a pod that exists, until `podGone`. */
  pod(pod: string, holder: Holder): void {
    this.#claim(pod, 'pod', holder);
  }

  podGone(pod: string): void {
    this.#drop(pod, 'pod');
  }

  /** Claims a slot at once, before the caches show anything of it, until `confirm`. */
  reserve(pod: string, holder: Holder): void {
    this.#claim(pod, 'reservation', holder);
  }

  confirm(pod: string): void {
    this.#drop(pod, 'reservation');
  }

  isReserved(pod: string): boolean {
    return this.#entries.get(pod)?.claims.reservation !== undefined;
  }

  /** Reports whether a session holds the slot of the pod, or is about to; a reservation in the pod's own name is none. */
  isTaken(pod: string): boolean {
    const { session, reservation } = this.#entries.get(pod)?.claims ?? {};
    return session !== undefined || (reservation !== undefined && reservation.name !== pod);
  }

  /** The holder of the pod's slot. */
  holder(pod: string): Holder | undefined {
    return this.#entries.get(pod)?.holder;
  }

  /** Holders of slots; of one class, or of one class in one namespace, where given. */
  *holders(within: { class?: string; namespace?: string } = {}): Iterable<Holder> {
    for (const { holder } of this.#entries.values()) {
      if (within.class !== undefined && (holder.class ?? within.class) !== within.class) continue;
      if (within.namespace !== undefined && holder.namespace !== within.namespace) continue;
      yield holder;
    }
  }

  #claim(pod: string, source: Source, holder: Holder): void {
    const entry = this.#entries.get(pod);
    if (!entry) {
      this.#entries.set(pod, { holder, claims: { [source]: holder } });
      this.#tally.add(holder);
      return;
    }
    entry.claims[source] = holder;
    this.#confirmOn(entry);
  }

  #drop(pod: string, source: Source): void {
    const entry = this.#entries.get(pod);
    if (!entry?.claims[source]) return;
    delete entry.claims[source];
    if (SOURCES.some((other) => entry.claims[other])) {
      this.#confirmOn(entry);
      this.#onReleased(pod);
      return;
    }
    this.#entries.delete(pod);
    this.#tally.add(entry.holder, -1);
    this.#onFreed();
  }

  #confirmOn(entry: Entry): void {
    const holder = SOURCES.map((source) => entry.claims[source]).find((claim) => claim !== undefined) as Holder;
    const moved = spaceOf(holder) !== spaceOf(entry.holder);
    if (moved) this.#tally.add(holder);
    if (moved) this.#tally.add(entry.holder, -1);
    entry.holder = holder;
    if (moved) this.#onFreed();
  }
}
