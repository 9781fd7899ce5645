/** Events about pods, as `kubectl describe` shows them. */

import type { Event } from '../../core/kube/builtin.ts';
import { events } from '../../core/kube/resources.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';
import type { Store } from '../apiserver/types.ts';
import { timestamp } from './status.ts';
import type { Pod } from './types.ts';

export class PodEvents {
  readonly #store: Store;
  readonly #deps: { clock: Clock; random: Random; logger: Logger; nodeName: string };

  constructor(store: Store, deps: { clock: Clock; random: Random; logger: Logger; nodeName: string }) {
    this.#store = store;
    this.#deps = deps;
  }

  /** Writes one event; a failed write is logged and has no other effect. */
  emit(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { clock, random, logger, nodeName } = this.#deps;
    const now = timestamp(clock.now());
    const { namespace, name, uid, resourceVersion } = pod.metadata;
    const event: Event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${name}.${random.bytes(8).toString('hex')}`, namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid, resourceVersion },
      type,
      reason,
      message,
      source: { component: 'kubelet' },
      reportingComponent: 'kubelet',
      reportingInstance: nodeName,
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    };
    this.#store.create(events, event).catch((error) => {
      logger.debug({ pod: name, namespace, reason, err: error }, 'event could not be written');
    });
  }
}
