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

const FILES = 16;

/** F-restore: 1 MiB of state is opened with its key and unpacked. */
export async function restores(): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  try {
    const state = join(folder, 'state');
    mkdirSync(state);
    // Random bytes: what is stored is as large as the state.
    for (let i = 0; i < FILES; i++) writeFileSync(join(state, `${i}`), randomBytes(MIB / FILES));
    const { packed, digest } = await packDirectory(state);
    const label = { session: 'bench', keyId: 'k1' };
    const key = stateKey(randomBytes(32), label.session);
    const sealed = sealState(key, packed, label, systemRandom);
    const values: number[] = [];
    for (let i = -1; i < SAMPLES; i++) {
      const ms = await took(async () => {
        const plain = openState(key, sealed, label);
        if (!plain) throw new Error('the state does not open');
        await unpackDirectory(join(folder, 'restored'), plain, digest);
      });
      if (i >= 0) values.push(ms);
    }
    return { floors: { 'F-restore': values } };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
