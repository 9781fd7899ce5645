import type { Meter } from '../../../runner/limits/meter.ts';
import { ALL_STOPPED, type Contained } from '../../../runner/process/contained.ts';
import type { Process } from '../scheduler.ts';

/** Families of processes that agents have started and that write to the state directory whenever they are not held. */
export class WritingFamilies {
  readonly #process: Process;
  readonly #living = new Set<{ held: boolean }>();

  constructor(process: Process) {
    this.#process = process;
  }

  /** Starts a family, which the meter holds as it does a real one; returns the function that ends it. */
  start(meter: Meter): () => void {
    const family = { held: false };
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    const contained = {
      exited: new Promise(() => {}),
      gone,
      onUsage: () => {},
      hold: async () => {
        family.held = true;
        return ALL_STOPPED;
      },
      release: () => {
        family.held = false;
      },
    } as unknown as Contained;
    this.#living.add(family);
    void meter.wrap(async () => contained)({ file: '', argv0: '', args: [], cwd: '', env: {} });
    return () => {
      this.#living.delete(family);
      resolve();
    };
  }

  /** Takes the time in which the state directory is read. Returns true if a family has written to it meanwhile. */
  async read(ms: number): Promise<boolean> {
    if (this.#living.size === 0) {
      await this.#process.sleep(ms);
      return false;
    }
    await this.#process.sleep(ms / 2);
    const wrote = [...this.#living].some(({ held }) => !held);
    await this.#process.sleep(ms / 2);
    return wrote;
  }
}
