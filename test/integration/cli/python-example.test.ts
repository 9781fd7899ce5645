import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { environments, type SessionClass, sessionclasses, sessions } from '../../../core/resources/kinds.ts';
import { uvProgram } from '../../../images/uv.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { machineIndex, unreachable } from '../../support/machine-index.ts';
import { PackageIndex } from '../../support/package-index.ts';
import { EXAMPLE_WHEELS, exampleCommands, PYTHON_EXAMPLE } from '../../support/python-example.ts';
import { skipIf } from '../../support/requires.ts';
import { Caller } from './support.ts';

/** Why the machine's index of packages cannot be used. `.ci/run` does not require one: the tests of the small index run anywhere. */
const noIndex = await unreachable(readFileSync(join(PYTHON_EXAMPLE, 'requirements.txt'), 'utf8'));

for (const { from, options, open } of [
  {
    from: 'a small index',
    options: {},
    open: async () => {
      const index = (await PackageIndex.start()).add(...EXAMPLE_WHEELS);
      return { url: index.url, close: () => index.close() };
    },
  },
  {
    from: 'the package index of this machine',
    options: skipIf(noIndex),
    open: async () => ({ url: await machineIndex(), close: async () => {} }),
  },
]) {
  describe(`examples/python-agent with packages from ${from}`, options, () => {
    const cluster = installed(ONE_LEADER);
    const caller = new Caller(PYTHON_EXAMPLE);
    let index: Awaited<ReturnType<typeof open>>;
    beforeAll(async () => {
      index = await open();
      if (index.url) {
        const spec = { environments: { index: index.url } } as SessionClass['spec'];
        await cluster.client.patch(sessionclasses, { name: 'python' }, { spec });
      }
      cluster.startController({ BERTH_UV: await uvProgram() });
    });
    afterAll(async () => {
      await index?.close();
      caller.remove();
    });

    test('every command of its README prints what the README shows, and the packages are installed once', async () => {
      const commands = exampleCommands();
      assert.deepEqual(
        commands.map(({ args: [command] }) => command),
        ['run', 'create', 'turn', 'suspend', 'turn', 'env', 'run'],
      );
      for (const { args, stdout } of commands) {
        const ended = await caller.berth(args, { env: { KUBECONFIG: cluster.kubeconfig } });
        assert.deepEqual([ended.code, ended.stdout], [0, stdout], `berth ${args.join(' ')}: ${ended.stderr}`);
      }
      const builds = (await cluster.client.list(sessions)).items.filter(({ spec }) => spec.build);
      assert.equal(builds.length, 1);
      const [made] = (await cluster.client.list(environments)).items;
      const names = made?.status?.packages?.map(({ name }) => name);
      assert.deepEqual(names, ['humanize', 'python-dateutil', 'six']);
    });

    test('a date that cannot be read is the error of the turn', async () => {
      const [{ args } = { args: [] }] = exampleCommands();
      const words = args.map((word) => (word.startsWith('{') ? '{"what": "dentist", "when": "soon"}' : word));
      const ended = await caller.berth(words, { env: { KUBECONFIG: cluster.kubeconfig } });
      assert.equal(ended.code, 1, ended.stderr);
      assert.match(ended.stderr, /when: .*soon/);
    });
  });
}
