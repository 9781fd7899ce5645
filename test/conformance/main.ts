/**
 * `make client-faults`: every scenario with every client, clean and with each fault at each exchange. `--only` has names of scenarios, clients
 * and faults; of each kind that is named, the others are left out. `--count` runs with a fault are chosen by the seed. The sync half of the Python
 * client, which is generated from the other, has faults only where it is named.
 *
 * `make client-runtimes`, with `--runtimes`: the same on the runtimes that the clients have to hold on.
 */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { pythonTools } from '../support/python-tools.ts';
import { seededRandom } from '../support/random.ts';
import { Bench } from './bench.ts';
import { type Client, pythonClient, TYPESCRIPT } from './clients.ts';
import { chosen, type Failure, nameOf, type OnRun, perform, performClean } from './plan.ts';
import { FAULTS } from './proxy/faults.ts';
import { runtimeClients } from './runtimes.ts';
import { type Scenario, scenarios } from './scenario.ts';

const LANES = 4;

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    count: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    runtimes: { type: 'boolean', default: false },
  },
});
const words = values.only
  .split(',')
  .map((word) => word.trim())
  .filter((word) => word !== '');
const all = {
  scenarios: scenarios(),
  clients: values.runtimes ? await runtimeClients() : await ownClients(),
  faults: Object.keys(FAULTS).map((name) => ({ name })),
};
const known = Object.values(all).flatMap((kind) => kind.map(({ name }) => name));
for (const word of words) assert.ok(known.includes(word), `--only: there is no ${word}; there are ${known.join(', ')}`);

async function ownClients(): Promise<Client[]> {
  const python = await pythonTools();
  return [TYPESCRIPT, pythonClient('python', python), pythonClient('python-sync', python)];
}

/** Those of a kind that are named; all, where none is. */
function named<T extends { name: string }>(kind: readonly T[]): T[] {
  const some = kind.filter(({ name }) => words.includes(name));
  return some.length > 0 ? some : [...kind];
}

/** On other runtimes those that take long run where they are named. */
const isMeant = ({ name, isLong }: Scenario) => !(values.runtimes && isLong) || words.includes(name);

const start = performance.now();
const seconds = () => `${Math.round((performance.now() - start) / 1000)} s`;
const print: OnRun = (run, ms, result) => {
  const how =
    'exchanges' in result
      ? `answers ${result.exchanges.map(({ status }) => status).join(' ')}`
      : `failed: ${(result.error as Error).stack}`;
  console.log(`${nameOf(run)}: ${ms} ms, ${how}`);
};
const failures: Failure[] = [];
const bench = await Bench.start(LANES);
console.log(`the embedded cluster stands, ${seconds()}`);
try {
  const clean = await performClean(bench, named(all.scenarios).filter(isMeant), named(all.clients), print);
  failures.push(...clean.report.failures);
  const faults = new Set<string>(named(all.faults).map(({ name }) => name));
  const possible = clean.faulty.filter(
    ({ client, fault }) =>
      faults.has(fault?.name ?? '') && (!client.name.endsWith('-sync') || words.includes(client.name)),
  );
  console.log(`${clean.report.runs} runs without a fault, ${possible.length} with one, ${seconds()}`);
  const faulty = chosen(possible, Number(values.count), seededRandom(Number(values.seed)));
  const report = await perform(bench, faulty, print);
  failures.push(...report.failures);
  console.log(`${report.runs} runs with a fault, ${report.notMade} of them without meeting it, ${seconds()}`);
} finally {
  console.log(`${failures.length} failed${failures.map(({ run }) => `\n- ${run}`).join('')}`);
  process.exitCode = failures.length > 0 ? 1 : 0;
  await bench.close();
}
