import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { apiConfig } from '../../api/config.ts';
import { parseConfig } from '../../core/program/config.ts';
import { type Any, find, render } from '../support/chart.ts';

const PROGRAMS = ['api', 'controller'] as const;
type Program = (typeof PROGRAMS)[number];

const deployment = (objects: Any[], program: Program) => find(objects, 'Deployment', `berth-${program}`);
const podOf = (objects: Any[], program: Program) => deployment(objects, program).spec.template;
/** Variables of a program's container by name; those that the kubelet fills are empty. */
const environment = (objects: Any[], program: Program): Record<string, string> =>
  Object.fromEntries(podOf(objects, program).spec.containers[0].env.map(({ name, value = '' }: Any) => [name, value]));

describe('replicas of the programs', () => {
  test('are two, on two nodes where there are two, and one of them at a time may be evicted', async () => {
    const objects = await render();
    for (const program of PROGRAMS) {
      const { replicas, selector } = deployment(objects, program).spec;
      assert.equal(replicas, 2);
      const [spread] = podOf(objects, program).spec.topologySpreadConstraints;
      assert.deepEqual(
        [spread.topologyKey, spread.whenUnsatisfiable, spread.labelSelector, spread.matchLabelKeys],
        ['kubernetes.io/hostname', 'ScheduleAnyway', selector, ['pod-template-hash']],
      );
      const budget = find(objects, 'PodDisruptionBudget', `berth-${program}`);
      assert.deepEqual(budget.spec, { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector });
    }
  });

  test('have no budget where there is one, or a value says so, so that a node can be drained', async () => {
    const budgets = async (...values: string[]) =>
      (await render(...values))
        .filter(({ kind }) => kind === 'PodDisruptionBudget')
        .map(({ metadata }) => metadata.name);
    assert.deepEqual(await budgets('api.replicas=1'), ['berth-controller']);
    assert.deepEqual(await budgets('controller.podDisruptionBudget.enabled=false'), ['berth-api']);
    assert.deepEqual(await budgets('api.enabled=false'), ['berth-controller']);
    // As `--reuse-values` of a release that did not know the value.
    assert.equal((await budgets('api.podDisruptionBudget=null', 'controller.podDisruptionBudget=null')).length, 2);
  });

  test('of the API are replaced only by ones that serve, and end within their grace after the delay in which they still serve', async () => {
    for (const [values, delayMs] of [
      [[], 5_000],
      [['api.shutdownDelaySeconds=90'], 90_000],
      [['api.shutdownDelaySeconds=0'], 0],
    ] as const) {
      const objects = await render(...values);
      assert.deepEqual(deployment(objects, 'api').spec.strategy.rollingUpdate, { maxUnavailable: 0, maxSurge: 1 });
      const config = parseConfig(apiConfig, environment(objects, 'api'));
      assert.equal(config.BERTH_API_SHUTDOWN_DELAY, delayMs);
      const { terminationGracePeriodSeconds } = podOf(objects, 'api').spec;
      // api/main.ts cuts what is left 9 s after the delay.
      assert.ok(terminationGracePeriodSeconds * 1000 >= delayMs + 10_000, String(terminationGracePeriodSeconds));
    }
  });
});
