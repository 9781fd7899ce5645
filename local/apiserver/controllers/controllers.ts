import { ApiError } from '../../../core/kube/errors.ts';
import type { Clock, Logger } from '../../../core/runtime.ts';
import type { WriteRequest } from '../registry/registry.ts';

/** Wait before work is repeated whose writes could not be stored, milliseconds. */
const RETRY_MS = 1_000;

interface Item {
  work: () => void;
  failed: boolean;
}

/** Runs the work of the server's own controllers, one item at a time and never within the write that caused it. */
export class Controllers {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #queue: Item[] = [];
  #scheduled = false;
  #closed = false;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  /** Options of these controllers' writes. */
  readonly request: WriteRequest = {
    user: { username: 'system:kube-controller-manager', groups: ['system:masters'] },
    fieldValidation: 'Ignore',
    dryRun: false,
    fieldManager: 'kube-controller-manager',
    warn() {},
  };

  soon(work: () => void): void {
    this.#add({ work, failed: false });
  }

  close(): void {
    this.#closed = true;
    this.#queue.length = 0;
  }

  #add(item: Item): void {
    this.#queue.push(item);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#closed) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      const item = this.#queue.shift();
      try {
        item?.work();
      } catch (error) {
        this.#failed(item as Item, error);
      }
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  /** Puts work back after a full disk; work that the server refuses is not tried again. */
  #failed(item: Item, error: unknown): void {
    if (!item.failed) this.#logger.error({ err: error }, 'a controller of the embedded cluster failed');
    item.failed = true;
    if (!(error instanceof ApiError)) this.#clock.setTimer(RETRY_MS, () => this.#add(item));
  }
}
