import type { Logger } from '../../../core/runtime.ts';
import type { WriteRequest } from '../registry/registry.ts';

/** Runs the work of the server's own controllers, one item at a time and never within the write that caused it. */
export class Controllers {
  readonly #logger: Logger;
  readonly #queue: (() => void)[] = [];
  #scheduled = false;
  #closed = false;

  constructor(logger: Logger) {
    this.#logger = logger;
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
    this.#queue.push(work);
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    this.#queue.length = 0;
  }

  #schedule(): void {
    if (this.#scheduled || this.#closed) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      const work = this.#queue.shift();
      try {
        work?.();
      } catch (error) {
        this.#logger.error({ err: error }, 'a controller of the embedded cluster failed');
      }
      if (this.#queue.length > 0) this.#schedule();
    });
  }
}
