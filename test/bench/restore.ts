import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openState, sealState, stateKey } from '../../core/frames/seal.ts';
import { systemRandom } from '../../core/system.ts';
import { packDirectory } from '../../runner/state/pack.ts';
import { unpackDirectory } from '../../runner/state/unpack.ts';
import { MIB } from './figures.ts';
import type { Outcome } from './run.ts';
import { SAMPLES } from './settings.ts';
import { took } from './took.ts';

/** Files of the state: random bytes, so that what is stored is as large as the state. */
export const STATE = { files: 16, bytesEach: MIB / 16 };

/** F-restore: 1 MiB of state is opened with its key and unpacked. */
export class Restoring {
  readonly #folder: string;
  readonly #restore: () => Promise<void>;

  private constructor(folder: string, restore: () => Promise<void>) {
    this.#folder = folder;
    this.#restore = restore;
  }

  /** Makes the state and restores it once, which warms caches. */
  static async start(): Promise<Restoring> {
    const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
    const state = join(folder, 'state');
    mkdirSync(state);
    for (let i = 0; i < STATE.files; i++) writeFileSync(join(state, `${i}`), randomBytes(STATE.bytesEach));
    const { packed, digest } = await packDirectory(state);
    const label = { session: 'bench', keyId: 'k1' };
    const key = stateKey(randomBytes(32), label.session);
    const sealed = sealState(key, packed, label, systemRandom);
    const restoring = new Restoring(folder, async () => {
      const plain = openState(key, sealed, label);
      if (!plain) throw new Error('the state does not open');
      await unpackDirectory(join(folder, 'restored'), plain, digest);
    });
    await restoring.sample();
    return restoring;
  }

  /** Resolves with the milliseconds of one restore. */
  sample(): Promise<number> {
    return took(this.#restore);
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** F-restore without a cluster. */
export async function restores(): Promise<Outcome> {
  using restoring = await Restoring.start();
  const values: number[] = [];
  for (let i = 0; i < SAMPLES; i++) values.push(await restoring.sample());
  return { floors: { 'F-restore': values } };
}
