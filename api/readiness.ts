import type { KubeClient } from '../core/kube/client.ts';
import type { Clock } from '../core/runtime.ts';

const CHECK_MS = 2_000;

/** Readiness of the server: it is not stopping, and the Kubernetes API answers. */
export class Readiness {
  readonly #api: Pick<KubeClient, 'raw'>;
  readonly #clock: Clock;
  readonly #isStopping: () => boolean;
  #checkedAt = -Infinity;
  #checking: Promise<string | undefined> = Promise.resolve(undefined);

  constructor(api: Pick<KubeClient, 'raw'>, clock: Clock, isStopping: () => boolean) {
    this.#api = api;
    this.#clock = clock;
    this.#isStopping = isStopping;
  }

  /** Returns the reason why the server is not ready, at most two seconds old; undefined when it is ready. */
  async problem(): Promise<string | undefined> {
    if (this.#isStopping()) return 'the server is being stopped';
    const now = this.#clock.monotonic();
    if (now - this.#checkedAt > CHECK_MS) {
      this.#checkedAt = now;
      this.#checking = this.#api.raw('GET', '/version', { deadlineMs: CHECK_MS }).then(
        () => undefined,
        (error: Error) => `the Kubernetes API does not answer: ${error.message}`,
      );
    }
    return this.#checking;
  }
}
