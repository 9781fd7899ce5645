import assert from 'node:assert/strict';
import { describe } from 'vitest';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { eventually } from '../../support/eventually.ts';
import { pythonAgent } from '../../support/installation.ts';
import { testInstalled } from '../../support/installed.ts';
import { becomesIdle, lateWriter, NO_SWEEPS, STEPS } from './reclaim.ts';

describe.concurrent('a leader that dies while it gives up the pod of an idle session', () => {
  for (const step of STEPS.filter(({ name }) => name !== 'the stored state is read')) {
    testInstalled(
      `when ${step.name} loses no turn that arrives then`,
      async (cluster) => {
        const name = `orphan-${STEPS.indexOf(step)}`;
        const controller = cluster.startController();
        const agent = pythonAgent(`
import subprocess
subprocess.Popen(['sh', '-c', '${lateWriter(name)}'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
answer(os.path.getsize(state + '/late') if os.path.exists(state + '/late') else 0)
`);
        const { metadata } = await cluster.create(name, { agent, input: 1 });
        await cluster.ended(name);
        await cluster.until(name, 'counted', ({ status }) => status?.turns?.total === 1);
        let killed: Promise<void> | undefined;
        const kill = (request: RequestFacts) => {
          if (killed || !request.user.endsWith('berth-controller')) return false;
          if (step.is(request, { name, uid: metadata.uid })) killed = controller.kill('SIGKILL');
          return false;
        };
        cluster.server.faults.delayNext(kill, 0);
        await becomesIdle(cluster, name);
        await eventually(() => killed !== undefined, { what: step.name });
        await killed;
        await cluster.turn(name, `${name}-2`, null);
        cluster.startController();
        const { status } = await cluster.ended(`${name}-2`);
        assert.deepEqual([status?.phase, status?.output], ['Succeeded', 20_000]);
      },
      NO_SWEEPS,
    );
  }
});
