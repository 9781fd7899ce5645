import { keyOf } from '../core/kube/cache.ts';
import { isTooLarge } from '../core/kube/errors.ts';
import type { Caches } from './caches/caches.ts';
import type { Watches } from './caches/watches.ts';
import type { AdmissionGate } from './capacity/admission-gate.ts';
import type { Meter, ReconcileResult } from './meter.ts';
import { urgentKeys } from './observed/urgency.ts';
import type { Reconciler } from './reconcile.ts';
import { type ControllerTools, QueueController } from './runtime/queue-controller.ts';

export interface SessionsOptions extends Pick<ControllerTools, 'clock' | 'random' | 'log' | 'signal' | 'closing'> {
  caches: Caches;
  reconciler: Reconciler;
  admissionGate: AdmissionGate;
  /** Reports whether the previous leader's last request is dead, and its effects have been read. */
  isReady(): boolean;
  workers: number;
  meter?: Meter | undefined;
}

/** The controller of sessions: its queue, with what is measured of a reconcile. */
export class Sessions extends QueueController {
  readonly #options: SessionsOptions;

  constructor(options: SessionsOptions) {
    super(options, { name: 'sessions', workers: options.workers, backoff: { baseMs: 50, maxMs: 30_000 } });
    this.#options = options;
  }

  override get watches(): Watches {
    const { caches } = this.#options;
    return {
      session: (key) => this.changed(key),
      namespaces: () => {
        // Classes select or limit namespaces by labels.
        for (const { metadata, spec } of caches.allSessions()) {
          if (caches.class(spec.class)?.spec.namespaceSelector) this.changed(keyOf(metadata));
        }
      },
    };
  }

  /** Requeues the session `namespace/name`. */
  changed(key: string): void {
    this.queue.add(key);
  }

  /** Requeues the session behind those that have changed. */
  changedLast(key: string): void {
    this.queue.addLast(key);
  }

  /** Requeues all sessions, those that somebody may wait for first. */
  changedAll(): void {
    const { caches } = this.#options;
    for (const key of urgentKeys(caches)) this.changed(key);
    for (const key of caches.keys()) this.changedLast(key);
  }

  /** Milliseconds for which sessions have waited while none was reconciled. */
  get stalledMs(): number {
    return this.queue.stalledMs;
  }

  /** Runs slow work within a reconcile, while another session has its worker. */
  withoutWorker<R>(work: () => Promise<R>): Promise<R> {
    return this.queue.withoutWorker(work);
  }

  protected override async reconcile(key: string, signal: AbortSignal): Promise<number | undefined> {
    const { reconciler, admissionGate, isReady, clock, closing, meter } = this.#options;
    const begun = clock.monotonic();
    const wasReady = isReady();
    const record = (result: ReconcileResult, error?: unknown) =>
      meter?.reconciled(result, (clock.monotonic() - begun) / 1000, error);
    try {
      const again = await reconciler.reconcile(key, signal);
      // A reconcile that began before that has put no turn in order.
      if (wasReady === isReady()) admissionGate.reconciled(key);
      record(again === undefined ? 'success' : 'requeue_after');
      return again;
    } catch (error) {
      if (isTooLarge(error)) admissionGate.tooLarge(key);
      record(signal.aborted || closing.aborted ? 'stopped' : 'error', error);
      throw error;
    }
  }
}
