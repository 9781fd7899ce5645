import type { StoredPod } from '../core/kube/builtin.ts';
import type { EventSubject } from '../core/kube/events.ts';
import { WorkQueue } from '../core/kube/queue.ts';
import type { KubeApi } from '../core/kube/types.ts';
import { API_GROUP_VERSION, LABEL_CLASS, LABEL_SESSION } from '../core/resources/names.ts';
import type { Clock, Logger, Random } from '../core/runtime.ts';
import type { Store } from '../core/store/store.ts';
import type { Effects } from './act/context.ts';
import type { Caches } from './caches.ts';
import type { EventFacts } from './decide/events.ts';
import { Ledger } from './ledger.ts';
import type { MasterKeys } from './link/keys.ts';
import { Links } from './link/links.ts';
import { Reconciler } from './reconcile.ts';
import type { CachedSession, Installation } from './world.ts';

export interface LeadershipOptions {
  /** Writes through it end with the lease. */
  api: KubeApi;
  caches: Caches;
  store: Store;
  keys: MasterKeys;
  clock: Clock;
  random: Random;
  log: Logger;
  installation: Installation;
  maxRunning: number | undefined;
  workers: number;
  /** Milliseconds until the last request of the leader before is dead; 0 when it let go of the lease. */
  admitAfterMs: number;
  /** Aborts when the leadership ends. */
  signal: AbortSignal;
  epoch(): number;
  /** A runner has obeyed a later leader. */
  onLaterEpoch(epoch: number): void;
  record(subject: EventSubject, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** What a controller does while it leads: everything but watching. */
export class Leading {
  readonly #options: LeadershipOptions;
  readonly #queue: WorkQueue;
  readonly #links: Links;
  readonly #ledger: Ledger;
  #cancelOpening: () => void = () => {};

  constructor(options: LeadershipOptions) {
    const { api, caches, clock, random, log, keys, signal } = options;
    this.#options = options;
    this.#links = new Links({
      api,
      clock,
      random,
      log,
      keys,
      epoch: options.epoch,
      onChange: (key) => this.#queue.add(key),
      onLaterEpoch: options.onLaterEpoch,
    });
    this.#ledger = new Ledger({
      holders: () => holders(caches),
      maxRunning: options.maxRunning,
      classLimit: (name) => caches.class(name)?.spec.limits?.maxRunning,
      onVacancy: (key) => this.#queue.add(key),
    });
    const effects: Effects = {
      api,
      caches,
      store: options.store,
      links: this.#links,
      ledger: this.#ledger,
      keys,
      clock,
      random,
      log,
      notify: (session, event) => this.#notify(session, event),
    };
    const reconciler = new Reconciler({ effects, installation: options.installation });
    this.#queue = new WorkQueue({
      clock,
      random,
      log,
      name: 'sessions',
      workers: options.workers,
      process: (key, stopped) => reconciler.reconcile(key, AbortSignal.any([signal, stopped])),
      backoff: { baseMs: 50, maxMs: 30_000 },
    });
  }

  /** Looks at everything there is. New sessions are admitted at once, or when a deposed leader's requests are dead. */
  start(): void {
    const { caches, admitAfterMs, clock } = this.#options;
    for (const session of caches.allSessions()) {
      const since = session.status?.queue?.since;
      const key = `${session.metadata.namespace}/${session.metadata.name}`;
      if (since) this.#ledger.wait({ key, class: session.spec.class, since: Date.parse(since) });
    }
    for (const key of caches.keys()) this.#queue.add(key);
    if (admitAfterMs > 0) this.#cancelOpening = clock.setTimer(admitAfterMs, () => this.#open());
    else this.#open();
    this.#queue.start();
  }

  #open(): void {
    this.#ledger.open();
    for (const key of this.#options.caches.keys()) this.#queue.add(key);
  }

  sessionChanged(key: string): void {
    this.#queue.add(key);
  }

  podChanged(pod: StoredPod, gone: boolean): void {
    this.#links.podChanged(pod, gone);
    if (gone) this.#ledger.vacancy();
  }

  classChanged(name: string): void {
    this.#ledger.vacancy();
    for (const session of this.#options.caches.allSessions()) {
      if (session.spec.class === name) this.#queue.add(`${session.metadata.namespace}/${session.metadata.name}`);
    }
  }

  /** No new effects; running ones are finished within `graceMs`, or left for the successor to find. */
  async stop(graceMs: number): Promise<void> {
    this.#cancelOpening();
    this.#ledger.close();
    await this.#queue.stop(graceMs);
    this.#links.closeAll();
  }

  #notify(session: CachedSession, event: EventFacts): void {
    const { name, namespace, uid } = session.metadata;
    const subject = { apiVersion: API_GROUP_VERSION, kind: 'Session', name, namespace: namespace as string, uid };
    this.#options.record(subject, event.type, event.reason, event.message);
  }
}

/** A pod counts until it is gone, and so does a session from its admission on. */
function* holders(caches: Caches) {
  for (const { metadata, spec, status } of caches.allSessions()) {
    if (status?.podName) yield { pod: status.podName, namespace: metadata.namespace as string, class: spec.class };
  }
  for (const { metadata } of caches.allPods()) {
    const session = caches.session(metadata.namespace as string, metadata.labels?.[LABEL_SESSION] ?? '');
    const ofClass = session?.spec.class ?? metadata.labels?.[LABEL_CLASS] ?? '';
    yield { pod: metadata.name, namespace: metadata.namespace as string, class: ofClass };
  }
}
