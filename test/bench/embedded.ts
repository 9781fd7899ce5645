import { ownedBy, type StoredSession, type Turn, turns } from '../../core/resources/kinds.ts';
import { API_GROUP_VERSION } from '../../core/resources/names.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { Installation } from '../support/installation.ts';
import { BenchCluster } from './cluster.ts';
import { type Bare, spawned } from './drivers.ts';
import { compared, type Figure } from './figures.ts';
import { count } from './settings.ts';

const SAMPLES = count(50, 5);
const FIRST = 3;

const PRINT = `echo '<<<BERTH_RESULT_START>>>{"status":"success","output":"hello"}<<<BERTH_RESULT_END>>>'`;

interface Case {
  what: string;
  spec: Partial<SessionClassSpec>;
  input: unknown;
  beside: Bare & { what: string };
}

const CASES: readonly Case[] = [
  {
    what: 'turn on the embedded cluster, driver Command, cat: created → terminal status seen',
    spec: { agent: { command: ['cat'], input: 'Text', result: 'Text' } },
    input: 'hello',
    beside: { what: 'spawn of cat', command: ['cat'], stdin: 'hello' },
  },
  {
    what: 'turn on the embedded cluster, runner None, sh: created → terminal status seen, a pod for each',
    spec: { runner: 'None', image: 'berth.local/machine', agent: { command: ['sh', '-c', PRINT] } },
    input: null,
    beside: { what: 'spawn of sh -c', command: ['sh', '-c', PRINT], stdin: 'null' },
  },
];

/** Turn with its owner, as the CLI and the HTTP API create it. */
export function newTurn(session: StoredSession, name: string, input: unknown): Turn {
  const { namespace, name: of } = session.metadata;
  return {
    apiVersion: API_GROUP_VERSION,
    kind: 'Turn',
    metadata: { namespace, name, ownerReferences: [ownedBy(session)] },
    spec: { session: of, input },
  } as unknown as Turn;
}

async function compare(cluster: Installation, { what, spec, input, beside }: Case, name: string): Promise<Figure> {
  await cluster.createClass(name, spec);
  const session = await cluster.create(name, { class: name });
  const watch = new BenchCluster(cluster.client, 'default');
  const values: number[] = [];
  const alone: number[] = [];
  for (let i = 0; i < FIRST + SAMPLES; i++) {
    const other = await spawned(beside);
    const turn = `${name}-${i}`;
    const create = () => cluster.client.create(turns, newTurn(session, turn, input));
    const { ms, object } = await watch.timed(turns, turn, create, ({ status }) => isTerminal(status?.phase));
    if (object.status?.output !== 'hello') throw new Error(JSON.stringify(object));
    // The next one begins on a session at rest.
    await cluster.until(name, 'counts the turn', ({ status }) => status?.turns?.succeeded === i + 1);
    if (i < FIRST) continue;
    alone.push(other);
    values.push(ms);
  }
  return compared(what, values, { what: beside.what, values: alone });
}

/** A whole turn, through API server and controller, on the embedded cluster. */
export async function embedded(): Promise<Figure[]> {
  const cluster = await Installation.start();
  try {
    cluster.startController();
    const figures: Figure[] = [];
    for (const [i, each] of CASES.entries()) figures.push(await compare(cluster, each, `bench-${i}`));
    return figures;
  } finally {
    await cluster.stop();
  }
}
