import { isDeepStrictEqual } from 'node:util';
import { anySignal } from '../../core/abort.ts';
import type { NetworkPolicy } from '../../core/kube/builtin.ts';
import { refOf } from '../../core/kube/cache.ts';
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../../core/kube/errors.ts';
import { networkPolicies as resource } from '../../core/kube/resources.ts';
import type { Stored } from '../../core/kube/types.ts';
import {
  ANNOTATION_EPOCH,
  LABEL_CLASS,
  LABEL_MANAGED_BY,
  LABEL_NETWORK,
  MANAGED_BY,
  networkPolicyName,
} from '../../core/resources/names.ts';
import type { Caches } from '../caches/caches.ts';
import type { Watches } from '../caches/watches.ts';
import { type ControllerTools, QueueController } from '../runtime/queue-controller.ts';
import { networkPolicy } from './policy.ts';

export interface NetworkPoliciesOptions extends ControllerTools {
  caches: Pick<
    Caches,
    'networkPolicy' | 'allNetworkPolicies' | 'allSessions' | 'allPools' | 'allPods' | 'class' | 'closed'
  >;
  /** Epoch of the present leadership. */
  epoch(): number;
  /** Milliseconds between two reconciles of an unchanged policy; a policy unused at two of them in a row is deleted. */
  intervalMs: number;
}

/** Raised when the policy's name is taken by an object that Berth did not make. */
export class NetworkPolicyTaken extends Error {
  readonly code = 'NetworkPolicyTaken';
}

/**
 * Maintains one NetworkPolicy per class in each namespace with sessions of it: created before their pods, kept as the
 * class says while there are any, and deleted some time after the last.
 */
export class NetworkPolicies extends QueueController {
  readonly #options: NetworkPoliciesOptions;
  /** Keys of policies that nothing uses → monotonic time since which that is known. */
  readonly #unusedSince = new Map<string, number>();
  /** UIDs of policies whose deletion was begun. They do not count, even where a cache or a live read shows them. */
  readonly #removed = new Set<string>();
  /** UIDs of policies that this leader has written: a deletion that an earlier leader left under way fails. */
  readonly #written = new Set<string>();

  constructor(options: NetworkPoliciesOptions) {
    super(options, { name: 'network policies', workers: 1, backoff: { baseMs: 100, maxMs: 60_000 } });
    this.#options = options;
  }

  override start(): void {
    for (const { metadata } of this.#options.caches.allNetworkPolicies()) {
      this.requeue(metadata.namespace, metadata.name);
    }
    // No event comes for a policy that was deleted while nobody led.
    for (const { metadata } of this.#options.caches.allPods()) {
      const ofClass = metadata.labels?.[LABEL_CLASS];
      if (ofClass !== undefined) this.requeue(metadata.namespace, networkPolicyName(ofClass));
    }
    super.start();
  }

  override get watches(): Watches {
    return {
      networkPolicy: (namespace, name) => this.requeue(namespace, name),
      class: (sessionClass) => {
        const name = networkPolicyName(sessionClass);
        for (const { metadata } of this.#options.caches.allNetworkPolicies()) {
          if (metadata.name === name) this.requeue(metadata.namespace, name);
        }
      },
    };
  }

  /**
   * Resolves once the policy exists as the class says and pods can rely on it; makes no request where that is known. Rejects when it
   * cannot be made so, with `NetworkPolicyTaken` when another object has its name.
   */
  async ensure(namespace: string, sessionClass: string, signal: AbortSignal): Promise<void> {
    const used = () => this.#unusedSince.delete(`${namespace}/${networkPolicyName(sessionClass)}`);
    // The session of the pod that is about to be made may be gone. The answer of the write brings a reconcile, which may come first.
    used();
    await this.#ensure(namespace, sessionClass, signal, true);
    used();
  }

  /** `isRelied`: pods are about to be made, so the policy has to be one that this leader wrote. */
  async #ensure(namespace: string, sessionClass: string, signal: AbortSignal, isRelied: boolean): Promise<void> {
    const { api, caches, log, epoch } = this.#options;
    const known = caches.class(sessionClass);
    if (!known) throw new Error(`SessionClass "${sessionClass}" is not there to say what its pods may reach`);
    const wanted = networkPolicy(namespace, sessionClass, known.spec.sandbox?.network);
    const ref = { namespace, name: wanted.metadata.name };
    const isFine = (policy: Stored<NetworkPolicy>) =>
      isAsWanted(policy, wanted) && (!isRelied || this.#written.has(policy.metadata.uid));
    const cached = caches.networkPolicy(namespace, ref.name);
    if (cached && !this.#removed.has(cached.metadata.uid) && isFine(cached)) return;
    const wrote = (policy: Stored<NetworkPolicy>, what: string) => {
      this.#written.add(policy.metadata.uid);
      log.info({ namespace, networkPolicy: ref.name }, what);
    };
    try {
      return wrote(await api.create(resource, wanted, { signal }), 'network policy created');
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const live = await api.get(resource, ref, { signal });
    if (this.#removed.has(live.metadata.uid)) {
      await this.#delete(live, signal);
      wrote(await api.create(resource, wanted, { signal }), 'network policy created');
    } else if (!isOurs(live)) {
      throw new NetworkPolicyTaken(
        `NetworkPolicy "${ref.name}" exists in namespace "${namespace}" and was not made by Berth; delete it.`,
      );
    } else if (!isFine(live)) {
      const labels = { ...live.metadata.labels, ...wanted.metadata.labels };
      const annotations = { ...live.metadata.annotations, [ANNOTATION_EPOCH]: `${epoch()}` };
      const metadata = { ...live.metadata, labels, annotations };
      wrote(
        await api.replace(resource, { ...live, metadata, spec: wanted.spec }, { signal }),
        'network policy updated',
      );
    }
  }

  protected override async reconcile(key: string, stopped: AbortSignal): Promise<number | undefined> {
    const { caches, intervalMs, closing } = this.#options;
    // A request that is cut off does no harm: a later leader writes a policy before it relies on it.
    const signal = anySignal(stopped, closing);
    const { namespace, name } = refOf(key);
    // Usage is unknown in a namespace that cannot be read.
    if (caches.closed(namespace)) return this.jittered(intervalMs);
    const policy = caches.networkPolicy(namespace, name);
    const sessionClass = this.#userOf(namespace, name);
    if (sessionClass !== undefined) {
      this.#unusedSince.delete(key);
      // The policy of a deleted class stays as it is.
      if (caches.class(sessionClass)) await this.#ensure(namespace, sessionClass, signal, false);
      return this.jittered(intervalMs);
    }
    if (!policy || !isOurs(policy) || this.#hasPods(namespace, policy)) return policy && this.jittered(intervalMs);
    const now = this.#options.clock.monotonic();
    const since = this.#unusedSince.get(key) ?? now;
    this.#unusedSince.set(key, since);
    // Events may bring many reconciles in a row.
    if (now - since < intervalMs / 2) return this.jittered(intervalMs);
    this.#unusedSince.delete(key);
    // No await separates the check for users from this line: later calls see that the policy does not count.
    this.#removed.add(policy.metadata.uid);
    await this.#delete(policy, signal);
    this.#options.log.info({ namespace, networkPolicy: name }, 'network policy removed');
    return undefined;
  }

  /** The class whose policy this is, while a session or a pool in the namespace uses it. */
  #userOf(namespace: string, name: string): string | undefined {
    const { caches } = this.#options;
    const isUser = ({ metadata, spec }: { metadata: { namespace: string }; spec: { class: string } }) =>
      metadata.namespace === namespace && networkPolicyName(spec.class) === name;
    return (caches.allSessions().find(isUser) ?? caches.allPools().find(isUser))?.spec.class;
  }

  #hasPods(namespace: string, { metadata: { labels } }: Stored<NetworkPolicy>): boolean {
    const key = labels?.[LABEL_NETWORK];
    return this.#options.caches
      .allPods()
      .some(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[LABEL_NETWORK] === key);
  }

  async #delete({ metadata }: Stored<NetworkPolicy>, signal: AbortSignal): Promise<void> {
    const { name, uid, resourceVersion } = metadata;
    const ref = { namespace: metadata.namespace, name };
    try {
      // A later leader that relies on the policy has written it.
      await this.#options.api.delete(resource, ref, { uid, resourceVersion, signal });
    } catch (error) {
      if (isConflict(error)) this.#removed.delete(uid);
      if (isNotFound(error) || isConflict(error)) return;
      // A rejected deletion has had no effect.
      if (error instanceof ApiError && error.code < 500) this.#removed.delete(uid);
      throw error;
    }
  }
}

function isAsWanted(present: Stored<NetworkPolicy>, wanted: NetworkPolicy): boolean {
  const labels = Object.entries(wanted.metadata.labels ?? {});
  return (
    !present.metadata.deletionTimestamp &&
    isDeepStrictEqual(present.spec, JSON.parse(JSON.stringify(wanted.spec))) &&
    labels.every(([key, value]) => present.metadata.labels?.[key] === value)
  );
}

/** Reports whether Berth made the policy. A user's policy of that name has other labels and is not changed. */
function isOurs({ metadata: { name, labels } }: Stored<NetworkPolicy>): boolean {
  return labels?.[LABEL_MANAGED_BY] === MANAGED_BY && name === `berth-${labels[LABEL_NETWORK]}`;
}
