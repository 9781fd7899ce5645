import type { StoredBlob, StoredTurn } from '../../../core/resources/kinds.ts';
import { BLOBS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Time for which a count of the store may be used, and what a list and the writes beside it may take. */
const COUNTED_MS = 70_000;
/** Part of a share that outputs, logs and artifacts may use. */
const HISTORY_FRACTION = 0.75;
/** Margin for what is being written and is stored later, or not at all. */
const MARGIN = 2;
/** Multiple of what is free that a namespace may hold while its states are replaced. */
const REPLACING = 4;
const partOf = (bytes: number, factor: number) => (Math.max(0, bytes) * factor) / (1 + factor);
const REFUSED = /no room in the store for (\d+) bytes/;
const WAITS = /the last turn stored (\d+)\./;

/** Bytes by namespace at each change of the store, for the time that matters. */
class Held {
  readonly #held = new Map<string, number>();
  #past: { until: number; held: ReadonlyMap<string, number> }[] = [];

  changed(namespace: string, bytes: number, now: number): void {
    this.#past = this.#past.filter(({ until }) => until >= now - COUNTED_MS * 2);
    this.#past.push({ until: now, held: new Map(this.#held) });
    this.#held.set(namespace, (this.#held.get(namespace) ?? 0) + bytes);
  }

  of(namespace: string): number {
    return this.#held.get(namespace) ?? 0;
  }

  /** What the namespace, or all others, have held at the moments since then. */
  since(at: number, namespace: string, which: 'Own' | 'Others'): number[] {
    const moments = [this.#held, ...this.#past.filter(({ until }) => until >= at).map(({ held }) => held)];
    return moments.map((held) =>
      [...held].reduce((sum, [name, bytes]) => sum + ((name === namespace) === (which === 'Own') ? bytes : 0), 0),
    );
  }
}

/**
 * A namespace is refused room in the store, and its turns wait for some, by what it holds itself: never while it holds far less than a share of what the
 * others leave. And no namespace holds so much that nothing is left to others.
 */
export const ownShare: MakeInvariant = (facts) => {
  const held = new Held();
  const ceiling = () => facts.where.storeCeilingBytes;
  /** Process that stored last, and since when it alone has. */
  let storing: { process: string; since: number } | undefined;
  return {
    sent({ verb, resource, process }) {
      if (verb !== 'create' || resource !== 'blobs' || storing?.process === process) return;
      storing = { process, since: storing ? facts.kubelets.now : Number.NEGATIVE_INFINITY };
    },
    committed({ storage, type, object }) {
      const now = facts.kubelets.now;
      if (storage === BLOBS && type !== 'MODIFIED') {
        const { metadata, spec } = object as unknown as StoredBlob;
        const { namespace } = metadata;
        const bytes = spec.data.length;
        held.changed(namespace, type === 'ADDED' ? bytes : -bytes, now);
        // Another controller's writes may not be counted yet.
        if (type !== 'ADDED' || (storing?.since ?? 0) > now - COUNTED_MS) return;
        const others = Math.min(...held.since(now - COUNTED_MS, namespace, 'Others'));
        const most = partOf(ceiling() - others, REPLACING);
        if (held.of(namespace) > most)
          facts.fail('leaves room', `${namespace} holds ${held.of(namespace)} of ${ceiling()}, the others ${others}`);
      }
      if (storage === TURNS && type === 'MODIFIED') {
        const { metadata, status } = object as unknown as StoredTurn;
        const { code, message = '' } = status?.error ?? {};
        const waits = status?.conditions?.find(({ reason }) => reason === 'StoreShareUsed')?.message ?? '';
        const wanted = Number((REFUSED.exec(message) ?? WAITS.exec(waits))?.[1] ?? 0);
        if (wanted === 0) return;
        const since = now - COUNTED_MS;
        const own = Math.max(...held.since(since, metadata.namespace, 'Own'));
        const others = Math.max(...held.since(since, metadata.namespace, 'Others'));
        const share = partOf(ceiling() - others, 1);
        if ((own + wanted) * MARGIN > share * (code === 'StateNotStored' ? 1 : HISTORY_FRACTION)) return;
        const what = `${code ?? 'StoreShareUsed'}: ${wanted} bytes, beside ${own} of its own and ${others} of others of ${ceiling()}`;
        facts.fail('own share', `turn ${metadata.name} is refused ${what}`);
      }
    },
  };
};
