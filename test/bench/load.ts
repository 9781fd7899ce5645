/** Twenty sessions at once, and the memory of their runners then. */
import { runnerMemory, WriteMeter } from './controller.ts';
import type { Ground } from './ground.ts';
import type { Outcome } from './run.ts';
import { count, SAMPLES } from './settings.ts';
import { median } from './statistics.ts';
import { shown } from './table.ts';

const SESSIONS = 20;
const ROUND_MS = count(3000, 2000);
const MB = 1e6;

/** Rounds of status patches by a client alone and of turns over all sessions, by turns; then the runners' memory. */
export async function load(ground: Ground): Promise<Outcome> {
  const names = Array.from({ length: SESSIONS }, (_, i) => `load-${i}`);
  const ready = await ground.ready(...names);
  using meter = await WriteMeter.open(ground.cluster.client);
  const values: number[] = [];
  const possible: number[] = [];
  const writes: number[] = [];
  for (let round = 0; round < SAMPLES; round++) {
    const patches = await ground.floors.patchesPerSecond(SESSIONS, ROUND_MS);
    const before = await meter.read();
    let ended = 0;
    const started = performance.now();
    await Promise.all(
      ready.map(async (session) => {
        while (performance.now() - started < ROUND_MS) {
          await ground.turn(session);
          ended += 1;
        }
      }),
    );
    values.push(ended / ((performance.now() - started) / 1000));
    // The creation of a turn is a write, too.
    writes.push(((await meter.read()) - before) / ended + 1);
    possible.push(patches / (writes.at(-1) as number));
  }
  const floors = { 'status patches a second ÷ writes of a turn': possible };
  const mean = writes.reduce((sum, each) => sum + each, 0) / writes.length;
  const note = `${mean.toFixed(1)} writes a turn, its creation included`;
  const rows = [{ id: 'throughput' as const, values, floors, note }, await runners()];
  await ground.gone(...names);
  return { rows };
}

/** Memory of each runner: its own pages, and its part of those that it shares, such as Node's. */
async function runners() {
  const found = await runnerMemory();
  const values = found.map(({ pss }) => pss / MB);
  const whole = shown(median(found.map(({ rss }) => rss / MB)));
  const note = `PSS of ${SESSIONS} runners after the load above; RSS ${whole} MB`;
  return { id: 'runner-memory' as const, values, note };
}
