import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { sessionclasses, sessions } from '../../../core/resources/kinds.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');

describe('controller check, which helm test runs', () => {
  const cluster = installed(ONE_LEADER);

  /** Runs the program to its end. `signal` ends it as soon as there is a session. */
  async function check(env: Record<string, string> = {}, signal?: NodeJS.Signals) {
    const before = await cluster.client.list(sessions, { namespace: 'default' });
    const watching = new AbortController();
    const child = spawn(process.execPath, [join(ROOT, 'controller/main.ts'), 'check'], {
      env: {
        PATH: process.env.PATH,
        KUBECONFIG: cluster.kubeconfig,
        BERTH_CHECK_NAMESPACE: 'default',
        BERTH_CHECK_CLASS: 'default',
        BERTH_CHECK_TIMEOUT: '60s',
        BERTH_CHECK_CONTROLLER: 'Deployment berth-system/berth-controller',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const text = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8').on('data', (part: string) => {
        text[stream] += part;
      });
    }
    const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
    if (signal) {
      const watch = { namespace: 'default', resourceVersion: before.metadata.resourceVersion, signal: watching.signal };
      for await (const event of cluster.client.watch(sessions, watch)) if (event.type === 'ADDED') break;
      watching.abort();
      child.kill(signal);
    }
    const code = await closed;
    const { items } = await cluster.client.list(sessions, { namespace: 'default' });
    return { code, ...text, left: items.map(({ metadata }) => metadata.name) };
  }

  test('fails where no controller runs, says where to look, and leaves no session', async () => {
    const { code, stdout, stderr, left } = await check({ BERTH_CHECK_TIMEOUT: '1s' });
    assert.deepEqual([code, stdout, left], [1, '', []]);
    assert.match(
      stderr,
      /^Session default\/check-\w+, after .*: is not finished: nobody has taken it\. See that Deployment berth-system\/berth-controller has a pod that is ready\.\n$/,
    );
  });

  test('that is told to end fails with the signal, and leaves no session', async () => {
    const { code, stderr, left } = await check({}, 'SIGTERM');
    assert.deepEqual([code, left], [1, []]);
    assert.match(stderr, /got SIGTERM/);
  });

  test('fails with what is wrong where its settings or its class cannot be used', async () => {
    assert.match((await check({ BERTH_CHECK_TIMEOUT: '0s' })).stderr, /BERTH_CHECK_TIMEOUT: "0s": must be at least 1s/);
    const nowhere = await check({ BERTH_CHECK_NAMESPACE: 'missing' });
    assert.equal(nowhere.code, 1);
    assert.match(
      nowhere.stderr,
      /^Session missing\/check-\w+, after .*: .*missing.*\n$/,
      'one line: there is nothing to delete',
    );
    await cluster.client.create(sessionclasses, { metadata: { name: 'closed' }, spec: {} } as never);
    cluster.startController();
    const { code, stderr, left } = await check({ BERTH_CHECK_CLASS: 'closed' });
    assert.deepEqual([code, left], [1, []]);
    assert.match(stderr, /spec\.agent\.command.*the class does not allow sessions to set it/);
  });

  test('runs a session, shows its answer and the time, and leaves no session', async () => {
    const { code, stdout, stderr, left } = await check();
    assert.deepEqual([code, stderr, left], [0, '', []]);
    assert.match(stdout, /^Session default\/check-\w+ has answered BERTH after [\d.]+m?s\.\n$/);
  });
});
