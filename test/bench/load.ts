/** Twenty sessions at once, and the memory of everything then. */
import { namespaces } from '../../core/kube/resources.ts';
import { sessions, turns } from '../../core/resources/kinds.ts';
import { eventually } from '../support/eventually.ts';
import { attaches, leader, leaderMemory, runnerMemory, WriteMeter } from './controller.ts';
import { type Ground, newSession } from './ground.ts';
import type { Outcome } from './run.ts';
import { count, SAMPLES } from './settings.ts';
import { median } from './statistics.ts';
import { shown } from './table.ts';

const SESSIONS = 20;
const ROUND_MS = count(3000, 2000);
const SUSPENDED = count(2000, 100);
const CREATORS = 20;
const MB = 1e6;
const PAUSE_MS = 200;

/** Rounds of status patches by a client alone and of turns over all sessions, by turns; then the memory. */
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
  const rows = [{ id: 'throughput' as const, values, floors, note }, await memory(ground), await runners()];
  await ground.gone(...names);
  return { rows };
}

/** Resident memory of the controller, with suspended sessions beside the live ones. */
async function memory(ground: Ground) {
  const { client } = ground.cluster;
  const namespace = `${ground.namespace}-many`;
  await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  try {
    const names = Array.from({ length: SUSPENDED }, (_, i) => `many-${i}`);
    const create = async (name: string) => client.create(sessions, newSession(namespace, name, { suspend: true }));
    const left = [...names];
    await Promise.all(
      Array.from({ length: CREATORS }, async () => {
        for (let name = left.pop(); name; name = left.pop()) await create(name);
      }),
    );
    await eventually(
      async () => {
        const { items } = await client.list(sessions, { namespace, resourceVersion: '0' });
        return items.length === SUSPENDED && items.every(({ status }) => status?.phase === 'Suspended');
      },
      { timeoutMs: 300_000, what: 'all are Suspended' },
    );
    const leads = await leader();
    const open = await attaches(client, leads);
    const { items: live } = await client.list(sessions, { namespace: ground.namespace });
    const { items: kept } = await client.list(turns, { namespace: ground.namespace });
    const total = SUSPENDED + live.length;
    const values: number[] = [];
    for (let i = 0; i < SAMPLES; i++) {
      for (const { rss } of await leaderMemory(leads)) values.push(rss / MB);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    return {
      id: 'controller-memory' as const,
      values,
      floors: { '120 MB + 10 KB a session + 130 KB an open attach': [120 + 0.01 * total + 0.13 * open] },
      note: `RSS; ${total} sessions, ${kept.length} turns, ${open} open attaches; 20,000 sessions not measured`,
    };
  } finally {
    await client.delete(namespaces, { name: namespace });
    await eventually(
      async () => (await client.list(sessions, { namespace, resourceVersion: '0' })).items.length === 0,
      {
        timeoutMs: 600_000,
        what: 'the suspended sessions are gone',
      },
    );
  }
}

/** Memory of each runner: its own pages, and its part of those that it shares, such as Node's. */
async function runners() {
  const found = await runnerMemory();
  const values = found.map(({ pss }) => pss / MB);
  const whole = shown(median(found.map(({ rss }) => rss / MB)));
  const note = `PSS of ${SESSIONS} runners after the load above; RSS ${whole} MB`;
  return { id: 'runner-memory' as const, values, note };
}
