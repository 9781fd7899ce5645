import type { AttachOptions, PodStream, StreamEnd } from '../../core/kube/types.ts';
import type { Random } from '../../core/runtime.ts';
import type { Completion, Driver } from '../../runner/drivers/driver.ts';
import { Runner } from '../../runner/runner.ts';
import { EMPTY_ARCHIVE, EMPTY_DIGEST } from '../../runner/state/archive.ts';
import type { VirtualClock } from './virtual-clock.ts';

/**
 * The runner's real code behind an attach that a test can break: no process, no network, no time but the virtual clock's.
 * As with a real attach, what is printed while nobody is attached is not replayed.
 */
export class PodRunner {
  readonly runner: Runner;
  /** Turns that the driver was given, by uid. */
  readonly given: string[] = [];
  /** Lines written to the pod from now on are lost. */
  deaf = false;
  #attached: { options: AttachOptions; end: (end: StreamEnd) => void } | undefined;
  #finish: ((completion: Completion) => void) | undefined;

  constructor(clock: VirtualClock, random: Random, podUID = 'pod-1') {
    const driver: Driver = {
      run: ({ turn }, hooks) => {
        this.given.push(turn.turn);
        hooks.started(1);
        return new Promise((resolve) => {
          this.#finish = resolve;
          hooks.signal.addEventListener('abort', () =>
            resolve({ outcome: hooks.signal.reason.outcome, error: hooks.signal.reason.error, leftRunning: [] }),
          );
        });
      },
      stop: async () => {},
    };
    this.runner = new Runner({
      podUID,
      clock,
      random,
      writeFrames: (text) => {
        this.#attached?.options.onStdout?.(Buffer.from(text));
        return true;
      },
      writeText: () => {},
      equip: () => ({
        driver,
        state: {
          pack: async () => ({ digest: EMPTY_DIGEST, bytes: EMPTY_ARCHIVE.length, packed: EMPTY_ARCHIVE, skipped: [] }),
          unpack: async () => {},
        },
        secrets: [],
        containment: 'Keeper',
        hardened: true,
      }),
    });
  }

  /** The agent of the running turn ends with this output. */
  finish(output: unknown): void {
    this.#finish?.({ outcome: 'Succeeded', output, leftRunning: [] });
  }

  /** The connection of the present attach dies. */
  drop(): void {
    const attached = this.#attached;
    this.#attached = undefined;
    attached?.end({ by: 'connection' });
  }

  attach = async (_ref: unknown, options: AttachOptions): Promise<PodStream> => {
    const { promise, resolve } = Promise.withResolvers<StreamEnd>();
    const attached = { options, end: resolve };
    this.#attached = attached;
    return {
      write: async (data) => {
        if (!this.deaf) this.runner.push(Buffer.from(data));
      },
      closeStdin: () => {},
      close: () => {
        if (this.#attached === attached) this.#attached = undefined;
        resolve({ by: 'local' });
      },
      closed: promise,
    };
  };
}
