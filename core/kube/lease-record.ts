import type { Clock } from '../runtime.ts';
import type { Lease, LeaseSpec } from './builtin.ts';
import { isNotFound } from './errors.ts';
import { leases } from './resources.ts';
import type { KubeApi, Stored } from './types.ts';

export interface LeaseRecordOptions {
  api: KubeApi;
  clock: Clock;
  namespace: string;
  name: string;
  /** Of this process. */
  identity: string;
  /** Others may take the lease when it has not changed for this long. */
  leaseDurationMs: number;
  /** Limit of a call that names none, milliseconds. */
  deadlineMs: number;
}

/** A Lease as it was last seen, and since when it has been like that: by the times in it nobody is judged. */
export class LeaseRecord {
  readonly #options: LeaseRecordOptions;
  #seen: { lease: Stored<Lease>; at: number } | undefined;

  constructor(options: LeaseRecordOptions) {
    this.#options = options;
  }

  /** undefined before the lease was read, and when it is not there. */
  get spec(): LeaseSpec | undefined {
    return this.#seen?.lease.spec;
  }

  /** Who else holds it. */
  get otherHolder(): string | undefined {
    const holder = this.spec?.holderIdentity;
    return holder && holder !== this.#options.identity ? holder : undefined;
  }

  /** Milliseconds until others may take the lease unless it changes. */
  get expiresInMs(): number {
    if (!this.#seen) return 0;
    const { lease, at } = this.#seen;
    const patience = Math.max(this.#options.leaseDurationMs, (lease.spec?.leaseDurationSeconds ?? 0) * 1000);
    return at + patience - this.#options.clock.monotonic();
  }

  /** What this process writes as the holder: from now on, or since `acquireTime`. */
  held(epoch: number, acquireTime = this.#timestamp()): LeaseSpec {
    return {
      holderIdentity: this.#options.identity,
      leaseDurationSeconds: Math.ceil(this.#options.leaseDurationMs / 1000),
      leaseTransitions: epoch,
      renewTime: this.#timestamp(),
      acquireTime,
    };
  }

  /** Resolves with whether the lease is there. */
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

  /** It is not there any more. */
  forget(): void {
    this.#seen = undefined;
  }

  async create(spec: LeaseSpec): Promise<void> {
    const { api, namespace, name, deadlineMs } = this.#options;
    this.#observe(await api.create(leases, { metadata: { namespace, name }, spec }, { deadlineMs }));
  }

  /** Replaces the lease as it was last seen: 409 when somebody else has written it since. */
  async write(spec: LeaseSpec, deadlineMs: number): Promise<void> {
    if (this.#seen === undefined) throw new Error('the lease has not been read yet');
    this.#observe(await this.#options.api.replace(leases, { ...this.#seen.lease, spec }, { deadlineMs }));
  }

  /** Follows the lease from how it was last seen; gives 'Gone' when it was deleted. */
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

  /** A MicroTime: six digits after the second, which the API server insists on. */
  #timestamp(): string {
    return new Date(this.#options.clock.now()).toISOString().replace('Z', '000Z');
  }
}
