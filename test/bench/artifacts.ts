import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { turns } from '../../core/resources/kinds.ts';
import { KiB, MiB } from '../../core/resources/limits.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { Installation } from '../support/installation.ts';
import { BenchCluster } from './cluster.ts';
import { newTurn } from './embedded.ts';
import { compared, type Figure } from './figures.ts';
import { count } from './settings.ts';

/** All contents together stay below the default ceiling of the store. */
const SAMPLES = count(25, 3);
const FIRST = 2;
const SIZES = [
  { what: '100 KiB', bytes: 100 * KiB },
  { what: '4 MiB', bytes: 4 * MiB },
] as const;

/** Turns that leave artifacts of different sizes, one after the other on one session, beside a turn that leaves none. */
export async function artifacts(): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-artifacts-'));
  const cluster = await Installation.start();
  try {
    // What cannot be compressed is the most that has to be carried.
    for (const { bytes } of SIZES) writeFileSync(join(folder, String(bytes)), randomBytes(bytes));
    cluster.startController();
    const script = `n=$(cat); [ "$n" = 0 ] || cp "${folder}/$n" "$BERTH_OUTPUT_DIR"; echo hello`;
    const agent = { command: ['sh', '-c', script], input: 'Text', result: 'Text' } as const;
    const session = await cluster.create('leaving', { agent } as never);
    const watch = new BenchCluster(cluster.client, 'default');
    let ended = 0;
    const timed = async (bytes: number) => {
      const name = `leaving-${ended}`;
      const create = () => cluster.client.create(turns, newTurn(session, name, String(bytes)));
      const { ms, object } = await watch.timed(turns, name, create, ({ status }) => isTerminal(status?.phase));
      const left = object.status?.artifacts?.[0]?.bytes ?? 0;
      if (object.status?.phase !== 'Succeeded' || left !== bytes) throw new Error(JSON.stringify(object.status));
      ended += 1;
      // The next one begins on a session at rest.
      await cluster.until('leaving', 'counts the turn', ({ status }) => status?.turns?.succeeded === ended);
      return ms;
    };
    const none: number[] = [];
    const values = SIZES.map(() => [] as number[]);
    for (let i = 0; i < FIRST + SAMPLES; i++) {
      const alone = await timed(0);
      for (const [index, { bytes }] of SIZES.entries()) {
        const ms = await timed(bytes);
        if (i >= FIRST) values[index]?.push(ms);
      }
      if (i >= FIRST) none.push(alone);
    }
    return SIZES.map(({ what }, index) =>
      compared(
        `turn on the embedded cluster that leaves ${what}: created → terminal status seen`,
        values[index] ?? [],
        {
          what: 'the same turn without artifacts',
          values: none,
        },
      ),
    );
  } finally {
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
