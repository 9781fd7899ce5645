import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { type Turn, turns } from '../../../core/resources/kinds.ts';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { type Answer, agent, becomesIdle, lateWriter, NO_SWEEPS, STEPS, scratch } from './reclaim.ts';

describe('an idle session', () => {
  const cluster = installed({ ...ONE_LEADER, ...NO_SWEEPS }, { controller: true });
  const suspended = (name: string) =>
    cluster.until(name, 'suspended', ({ status }) => status?.phase === 'Suspended' && !status.podName);

  // Steps that can be told apart come first, as their tests run side by side.
  for (const step of STEPS.toSorted((a, b) => Number(b.isOwn) - Number(a.isOwn))) {
    for (const fails of [false, true]) {
      test(`loses no turn that arrives when ${step.name}${fails ? ', and that fails' : ''}`, {
        concurrent: step.isOwn,
      }, async () => {
        const name = `step-${STEPS.indexOf(step)}-${fails ? 'fails' : 'works'}`;
        const { metadata } = await cluster.create(name, { agent: agent(lateWriter(name)), input: 1 });
        await cluster.ended(name);
        await cluster.until(name, 'counted', ({ status }) => status?.turns?.total === 1);
        const session = { name, uid: metadata.uid };
        let given: Promise<unknown> | undefined;
        const give = (request: RequestFacts): boolean => {
          if (given || !request.user.endsWith('berth-controller') || !step.is(request, session)) return false;
          const turn = {
            apiVersion: 'berth.dev/v1alpha1',
            kind: 'Turn',
            metadata: { name: `${name}-2`, namespace: 'default' },
            spec: { session: name, cancel: false },
          };
          given = cluster.server.store.create(turns, turn as Turn);
          return fails;
        };
        const error = { code: 500, reason: 'InternalError', message: 'it is meant to fail' };
        cluster.server.faults.failNext(give, { status: 'Failure', ...error } as never);
        await becomesIdle(cluster, name);
        await eventually(() => given, { what: step.name });
        await given;
        const turn = await cluster.ended(`${name}-2`);
        assert.equal(turn.status?.phase, 'Succeeded', JSON.stringify(turn.status?.error));
        const output = turn.status?.output as Answer;
        assert.deepEqual(
          [output.count, output.late],
          [2, 20_000],
          'with the state that the reclaim was about to store',
        );
        assert.equal(readFileSync(join(scratch, name), 'utf8'), `${name}\n${name}-2\n`, 'every turn ran once');
        await suspended(name);
      });
    }
  }
});
