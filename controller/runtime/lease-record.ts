import type { Lease, LeaseSpec } from '../../core/kube/builtin.ts';
import { isNotFound } from '../../core/kube/errors.ts';
import { leases } from '../../core/kube/resources.ts';
import type { KubeApi, Stored } from '../../core/kube/types.ts';
import type { Clock } from '../../core/runtime.ts';

/** Annotation of a lease whose holder knows that no request of an earlier leader can take effect any more. */
const ANNOTATION_SETTLED = 'berth.dev/settled';

export interface LeaseRecordOptions {
  api: KubeApi;
  clock: Clock;
  namespace: string;
  name: string;
  /** Identity of this process. */
  identity: string;
  /** Time without a change after which others may take the lease. */
  leaseDurationMs: number;
  /** Limit of a call that sets none, milliseconds. */
  deadlineMs: number;
}

/**
 * The Lease as last read, and since when it has not changed. The times inside it are not compared, because clocks of
 * machines differ.
 */
export class LeaseRecord {
  readonly #options: LeaseRecordOptions;
  #seen: { lease: Stored<Lease>; at: number } | undefined;

  constructor(options: LeaseRecordOptions) {
    this.#options = options;
  }

  /** The record as it was read; undefined before, and when the lease does not exist. */
  get spec(): LeaseSpec | undefined {
    return this.#seen?.lease.spec;
  }

  /** Identity of another process that holds the lease. */
  get otherHolder(): string | undefined {
    const holder = this.spec?.holderIdentity;
    return holder && holder !== this.#options.identity ? holder : undefined;
  }

  /** True if the holder knows that no request of an earlier leader can take effect any more. */
  get isSettled(): boolean {
    return this.#seen?.lease.metadata.annotations?.[ANNOTATION_SETTLED] === 'true';
  }

  /** Milliseconds until others may take the lease unless it changes. */
  get expiresInMs(): number {
    if (!this.#seen) return 0;
    const { lease, at } = this.#seen;
    const patience = Math.max(this.#options.leaseDurationMs, (lease.spec?.leaseDurationSeconds ?? 0) * 1000);
    return at + patience - this.#options.clock.monotonic();
  }

  /** Returns the spec that this process writes as the holder, from now on or since `acquireTime`. */
  held(epoch: number, acquireTime = this.#timestamp()): LeaseSpec {
    return {
      holderIdentity: this.#options.identity,
      leaseDurationSeconds: Math.ceil(this.#options.leaseDurationMs / 1000),
      leaseTransitions: epoch,
      renewTime: this.#timestamp(),
      acquireTime,
    };
  }

  /** Reads the lease; resolves with false if it does not exist. */
  async read(): Promise<boolean> {
    const { api, namespace, name, deadlineMs } = this.#options;
    try {
      this.#observe(await api.get(leases, { namespace, name }, { deadlineMs }));
      return true;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return false;
    }
  }

  /** Records that the lease does not exist any more. */
  forget(): void {
    this.#seen = undefined;
  }

  async create(spec: LeaseSpec): Promise<void> {
    const { api, namespace, name, deadlineMs } = this.#options;
    this.#observe(await api.create(leases, { metadata: { namespace, name }, spec }, { deadlineMs }));
  }

  /** Replaces the lease as last read; 409 when another process has written it since. */
  async write(spec: LeaseSpec, deadlineMs: number, isSettled = false): Promise<void> {
    if (this.#seen === undefined) throw new Error('the lease has not been read yet');
    const { lease } = this.#seen;
    const { [ANNOTATION_SETTLED]: _, ...others } = lease.metadata.annotations ?? {};
    const annotations = isSettled ? { ...others, [ANNOTATION_SETTLED]: 'true' } : others;
    const next = { ...lease, metadata: { ...lease.metadata, annotations }, spec };
    this.#observe(await this.#options.api.replace(leases, next, { deadlineMs }));
  }

  /** Follows the lease from its last read version; yields 'Gone' when it was deleted. */
  async *changes(signal: AbortSignal): AsyncIterable<'Changed' | 'Gone'> {
    const { api, namespace, name } = this.#options;
    if (!this.#seen) return;
    const { resourceVersion } = this.#seen.lease.metadata;
    const fieldSelector = `metadata.name=${name}`;
    for await (const event of api.watch(leases, { namespace, fieldSelector, resourceVersion, signal })) {
      if (event.type === 'BOOKMARK') continue;
      if (event.type !== 'DELETED') this.#observe(event.object);
      yield event.type === 'DELETED' ? 'Gone' : 'Changed';
    }
  }

  #observe(lease: Stored<Lease>): void {
    if (this.#seen?.lease.metadata.resourceVersion === lease.metadata.resourceVersion) return;
    this.#seen = { lease, at: this.#options.clock.monotonic() };
  }

  /** Formats a MicroTime: the API server requires six digits after the second. */
  #timestamp(): string {
    return new Date(this.#options.clock.now()).toISOString().replace('Z', '000Z');
  }
}
