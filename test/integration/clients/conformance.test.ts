import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { Bench } from '../../conformance/bench.ts';
import { type Client, pythonClient, TYPESCRIPT } from '../../conformance/clients.ts';
import { chosen, type Failure, perform, performClean, sample } from '../../conformance/plan.ts';
import { scenarios } from '../../conformance/scenario.ts';
import { noPythonTools, pythonTools } from '../../support/python-tools.ts';
import { seededRandom } from '../../support/random.ts';
import { skipIf } from '../../support/requires.ts';

const LANES = 2;
/** Scenarios of each client, and runs of these with a fault: 60 runs in all. */
const SCENARIOS = 10;
const FAULTY: Readonly<Record<string, number>> = { typescript: 12, python: 12, 'python-sync': 5 };
// Always the same runs: `make client-faults` has all of them.
const seed = Number(process.env.SEED ?? 1);

const short = scenarios().filter(({ isLong }) => !isLong);

const textOf = (failures: readonly Failure[]) =>
  failures.map(({ run, error }) => `${run} (SEED=${seed})\n${(error as Error).stack}`).join('\n\n');

describe('the scenarios of the clients', async () => {
  const withoutPython = skipIf(await noPythonTools());
  let bench: Bench;
  beforeAll(async () => {
    console.log(`make integration ONLY=clients/conformance SEED=${seed}`);
    bench = await Bench.start(LANES);
  });
  afterAll(() => bench.close());

  /** Chooses scenarios and faults by the seed. */
  const holds = async (client: Client) => {
    const random = seededRandom(seed);
    const { report: clean, faulty } = await performClean(bench, sample(short, SCENARIOS, random), [client]);
    assert.equal(textOf(clean.failures), '');
    const { failures } = await perform(bench, chosen(faulty, FAULTY[client.name] ?? 0, random));
    assert.equal(textOf(failures), '');
  };

  test('hold for the TypeScript client, also with faults of the network', () => holds(TYPESCRIPT));

  for (const half of ['python', 'python-sync'] as const) {
    test(`hold for the Python client, also with faults of the network: ${half}`, withoutPython, async () => {
      await holds(pythonClient(half, await pythonTools()));
    });
  }
});
