import { isNotFound } from '../../core/kube/errors.ts';
import { Informer } from '../../core/kube/informer.ts';
import { namespaces as resource } from '../../core/kube/resources.ts';
import type { Stored } from '../../core/kube/types.ts';
import { delay } from '../../core/runtime.ts';
import type { CacheTools } from './tools.ts';

export interface NamespaceLister {
  /** Labels of a Namespace; undefined while unknown. */
  namespaceLabels(name: string): Readonly<Record<string, string>> | undefined;
}

/** Labels of namespaces; a class's namespaceSelector matches them. */
export interface NamespaceLabels {
  /** Labels of a namespace; undefined while unknown. */
  of(namespace: string): Readonly<Record<string, string>> | undefined;
  start(): void;
  stop(): Promise<void>;
}

export interface NamespaceLabelsOptions extends Omit<CacheTools, 'watchers'> {
  /** Handler of labels that may have changed. */
  onChange(): void;
}

/** Age after which unconfirmed labels count as unknown. */
const STALE_MS = 180_000;
const POLL_MS = 30_000;
const POLL_AGAIN_MS = 5_000;

export function namespaceLabels(options: NamespaceLabelsOptions): NamespaceLabels {
  return options.namespaces ? polled(options, options.namespaces) : watched(options);
}

function watched({ api, clock, random, log, onChange }: NamespaceLabelsOptions): NamespaceLabels {
  const slim = ({ metadata }: Stored): Stored => {
    const { name, uid, resourceVersion, creationTimestamp, labels = {} } = metadata;
    return { metadata: { name, uid, resourceVersion, creationTimestamp, labels } };
  };
  const informer = new Informer({ api, clock, random, log, resource, transform: slim });
  informer.addHandler({ add: onChange, update: onChange, delete: onChange });
  return {
    of: (namespace) =>
      informer.staleness <= STALE_MS ? informer.get(undefined, namespace)?.metadata.labels : undefined,
    start: () => informer.start(),
    stop: () => informer.stop(),
  };
}

/**
 * Polls the namespaces one by one, for installations with rights per namespace: a Role can allow to get its own
 * namespace, but never to list or watch namespaces.
 */
function polled({ api, clock, log, onChange }: NamespaceLabelsOptions, namespaces: readonly string[]): NamespaceLabels {
  const known = new Map<string, { labels: Record<string, string>; at: number }>();
  const stopped = new AbortController();
  let running: Promise<unknown> = Promise.resolve();

  const read = async (name: string): Promise<void> => {
    const at = clock.monotonic();
    const { metadata } = await api.get(resource, { name }, { signal: stopped.signal });
    const before = known.get(name);
    known.set(name, { labels: metadata.labels ?? {}, at });
    if (JSON.stringify(before?.labels) !== JSON.stringify(metadata.labels ?? {})) onChange();
  };
  const follow = async (name: string): Promise<void> => {
    while (!stopped.signal.aborted) {
      let waitMs = POLL_MS;
      try {
        await read(name);
      } catch (error) {
        if (stopped.signal.aborted) return;
        if (isNotFound(error)) known.delete(name);
        waitMs = POLL_AGAIN_MS;
        log.info({ namespace: name, err: (error as Error).message }, 'labels of a namespace could not be read');
      }
      await delay(clock, waitMs, stopped.signal).catch(() => {});
    }
  };
  return {
    of: (name) => {
      const found = known.get(name);
      return found && clock.monotonic() - found.at <= STALE_MS ? found.labels : undefined;
    },
    start: () => {
      running = Promise.all(namespaces.map(follow));
    },
    stop: async () => {
      stopped.abort(new Error('the controller is stopping'));
      await running;
    },
  };
}
