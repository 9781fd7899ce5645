/** Twenty sessions at once, and the memory of everything then. */
import { namespaces, pods } from '../../core/kube/resources.ts';
import { sessions, turns } from '../../core/resources/kinds.ts';
import { LABEL_SESSION } from '../../core/resources/names.ts';
import { eventually } from '../support/eventually.ts';
import { attaches, leader, residentBytes, writesOf } from './controller.ts';
import { type Ground, newSession } from './ground.ts';
import type { Outcome } from './run.ts';
import { count, SAMPLES } from './settings.ts';

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
  const leads = await leader();
  const values: number[] = [];
  const possible: number[] = [];
  const writes: number[] = [];
  for (let round = 0; round < SAMPLES; round++) {
    const patches = await ground.floors.patchesPerSecond(SESSIONS, ROUND_MS);
    const before = await writesOf(leads);
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
    writes.push(((await writesOf(leads)) - before) / ended + 1);
    possible.push(patches / (writes.at(-1) as number));
  }
  const floors = { 'status patches a second ÷ writes of a turn': possible };
  const mean = writes.reduce((sum, each) => sum + each, 0) / writes.length;
  const note = `${mean.toFixed(1)} writes a turn, its creation included`;
  const rows = [{ id: 'throughput' as const, values, floors, note }, await memory(ground), await runners(ground)];
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
    const open = await attaches(leads);
    const { items: live } = await client.list(sessions, { namespace: ground.namespace });
    const { items: kept } = await client.list(turns, { namespace: ground.namespace });
    const total = SUSPENDED + live.length;
    const values: number[] = [];
    for (let i = 0; i < SAMPLES; i++) {
      values.push((await residentBytes(leads)) / MB);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    return {
      id: 'controller-memory' as const,
      values,
      floors: { '120 MB + 10 KB a session + 130 KB an open attach': [120 + 0.01 * total + 0.13 * open] },
      note: `${total} sessions, ${kept.length} turns, ${open} open attaches; 20,000 sessions not measured`,
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

/** Resident memory of each session's container: the runner, and its keeper. */
async function runners({ cluster, namespace }: Ground) {
  const { items } = await cluster.client.list(pods, { namespace, labelSelector: LABEL_SESSION });
  const values: number[] = [];
  for (const pod of items) {
    const bytes = await cluster.memory(pod, 'session');
    if (bytes !== undefined) values.push(bytes / MB);
  }
  if (values.length === 0) return { id: 'runner-memory' as const, why: 'not measured: the kubelet tells no memory' };
  return { id: 'runner-memory' as const, values, note: `${SESSIONS} sessions after the load above, keeper included` };
}
