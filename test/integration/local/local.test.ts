import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { freePort } from '../../../local/ports.ts';
import { eventually } from '../../support/eventually.ts';
import { exists, processesWith } from '../../support/processes.ts';
import type { RawApi } from '../../support/raw-api.ts';
import { LocalProgram } from './program.ts';

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/berth-system/leases/berth-controller';

/** Paths of what the controller was given to reach the API. */
function controllerKubeconfigs(local: LocalProgram): string[] {
  const folder = join(local.home, 'programs');
  const names = readdirSync(folder).filter((name) => name.startsWith('controller.'));
  return names.map((name) => join(folder, name));
}

const tokenIn = (kubeconfig: string): string => JSON.parse(readFileSync(kubeconfig, 'utf8')).users[0].user.token;

/** The controller's lease once somebody holds it. */
async function heldLease(api: RawApi) {
  return eventually(async () => {
    const { status, body } = await api.get(LEASE);
    return status === 200 && body.spec.holderIdentity ? body : undefined;
  });
}

describe('the program local', () => {
  let local: LocalProgram;
  beforeAll(() => {
    local = new LocalProgram();
  });
  afterAll(() => local.remove());

  test('up --detach prints one line, the path of a kubeconfig that works, and nothing else', async () => {
    const { code, stdout, stderr } = await local.run('up', '--detach');
    assert.deepEqual([code, stdout, stderr], [0, `${local.home}/kubeconfig\n`, '']);
    assert.equal(statSync(join(local.home, 'kubeconfig')).mode & 0o777, 0o600);
    const api = await local.api();
    assert.equal((await api.get('/api/v1/nodes/embedded')).status, 200);
    const classes = await api.get('/apis/berth.dev/v1alpha1/sessionclasses/default');
    assert.equal(classes.status, 200, classes.text);
    const { apiUrl, metricsUrl } = await local.status();
    const isReady = async () => (await fetch(`${apiUrl}/readyz`)).status === 200;
    await eventually(isReady, { what: 'the API is ready, as it was' });
    assert.match(await (await fetch(metricsUrl)).text(), /^# TYPE berth_leader gauge$/m);
  });

  test('status names the address of the HTTP API and a file with a token that it takes, for its user alone', async () => {
    const { url, apiUrl, apiTokenFile, metricsUrl } = await local.status();
    assert.equal(statSync(apiTokenFile).mode & 0o777, 0o600);
    const authorization = `Bearer ${readFileSync(apiTokenFile, 'utf8').trim()}`;
    const call = (path: string, init: RequestInit = {}) =>
      fetch(`${apiUrl}${path}`, { ...init, headers: { authorization, 'content-type': 'application/json' } });
    const made = await call('/v1/namespaces/default/sessions', {
      method: 'POST',
      body: JSON.stringify({ metadata: { name: 'of-this-machine' }, spec: { agent: { command: ['/bin/cat'] } } }),
    });
    assert.equal(made.status, 201, await made.text());
    assert.equal((await call('/metrics')).status, 200);
    const session = await call('/v1/namespaces/default/sessions/of-this-machine', { method: 'DELETE' });
    assert.equal(session.status, 204);
    // It is for the HTTP API alone.
    const token = authorization.replace('Bearer ', '');
    assert.equal((await (await local.api()).get('/version', { token })).status, 401);
    const { code, stdout } = await local.run('status');
    assert.equal(code, 0);
    assert.deepEqual(stdout.split('\n'), [
      `Kubernetes API  ${url}`,
      `kubeconfig      ${local.home}/kubeconfig`,
      `HTTP API        ${apiUrl}`,
      `token file      ${apiTokenFile}`,
      `metrics         ${metricsUrl}`,
      '',
    ]);
  });

  test('runs its programs with the rights of their service accounts and no more', async () => {
    const api = await local.api();
    const token = tokenIn(controllerKubeconfigs(local)[0]!);
    assert.equal((await api.get('/apis/berth.dev/v1alpha1/sessions', { token })).status, 200);
    assert.equal((await api.get('/api/v1/secrets', { token })).status, 403);
    // Agents' files are in ConfigMaps: read, never written.
    assert.equal((await api.get('/api/v1/configmaps', { token })).status, 200);
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mine' } };
    const made = await api.post('/api/v1/namespaces/default/configmaps', configMap, { token });
    assert.equal(made.status, 403);
    assert.equal((await api.get('/api/v1/serviceaccounts', { token })).status, 403);
  });

  test('a second up in the same home is refused in clear words and disturbs nothing', async () => {
    const before = await local.status();
    const { code, stderr } = await local.run('up');
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`already runs in ${local.home} \\(process ${before.pid}\\).*local down`));
    assert.deepEqual(await local.status(), before);
  });

  test('a second up --detach finds the cluster that runs', async () => {
    const before = await local.status();
    const apiPort = new URL(before.apiUrl).port;
    const { code, stdout } = await local.run('up', '--detach', '--api-port', apiPort);
    assert.deepEqual([code, stdout], [0, `${local.home}/kubeconfig\n`]);
    for (const flag of ['--port', '--api-port']) {
      const { code, stderr } = await local.run('up', '--detach', flag, '1');
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`already runs, at https?://127.0.0.1:\\d+: leave ${flag} out`));
    }
    assert.deepEqual(await local.status(), before);
  });

  test('a program that is killed is started again', async () => {
    const { apiUrl } = await local.status();
    const pids = processesWith(`BERTH_LOCAL_HOME=${local.home}`);
    assert.equal(pids.length, 2);
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    await eventually(() => {
      const now = processesWith(`BERTH_LOCAL_HOME=${local.home}`);
      return now.length === 2 && !now.some((pid) => pids.includes(pid));
    });
    await eventually(async () => (await fetch(`${apiUrl}/readyz`)).status === 200);
  });

  test('a controller that is killed leaves its lease to its successor, and nothing it was given is of use', async () => {
    const api = await local.api();
    const before = await heldLease(api);
    const [kubeconfig] = controllerKubeconfigs(local) as [string];
    const token = tokenIn(kubeconfig);
    const [controller] = processesWith(`BERTH_LOCAL_HOME=${local.home}`).filter((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('controller/main.ts'),
    );
    process.kill(controller!, 'SIGKILL');
    const after = await eventually(async () => {
      const lease = await heldLease(api);
      return lease.spec.holderIdentity === before.spec.holderIdentity ? undefined : lease;
    });
    assert.equal(after.metadata.uid, before.metadata.uid, 'it was not deleted');
    assert.equal(after.spec.leaseTransitions, before.spec.leaseTransitions + 1);
    assert.equal((await api.get('/version', { token })).status, 401);
    assert.equal(existsSync(kubeconfig), false);
  });

  test('after a kill -9 the next cluster takes over the lease and accepts nothing that the last one gave out', async () => {
    const before = await heldLease(await local.api());
    const [kubeconfig] = controllerKubeconfigs(local) as [string];
    const token = tokenIn(kubeconfig);
    process.kill((await local.status()).pid, 'SIGKILL');
    assert.equal((await local.run('up', '--detach')).code, 0);
    const api = await local.api();
    const after = await heldLease(api);
    assert.equal(after.metadata.uid, before.metadata.uid, 'it was not deleted');
    assert.ok(after.spec.leaseTransitions > before.spec.leaseTransitions);
    assert.notEqual(after.spec.holderIdentity, before.spec.holderIdentity);
    assert.equal((await api.get('/version', { token })).status, 401);
    assert.equal(existsSync(kubeconfig), false);
  });

  test('after a kill -9 the next up ends what was left, fails its pods and starts none twice', async () => {
    const starts = join(local.home, 'starts');
    await local.pod('lost', `echo x >> ${starts}; echo begun; env -i sleep 1000 & echo $!; wait`);
    const log = await eventually(async () => {
      const text = await local.podLog('lost');
      return text.split('\n').length === 3 ? text : undefined;
    });
    const orphan = Number(log.split('\n')[1]);
    const before = await local.status();
    process.kill(before.pid, 'SIGKILL');
    await eventually(() => !exists(before.pid));
    assert.equal((await local.run('status')).code, 1);
    const left = local.processes();
    assert.ok(left.length >= 3, 'controller, API and pod outlive a kill -9');
    assert.ok(exists(orphan));

    const unknown = join(local.home, 'pods', 'of-no-pod');
    mkdirSync(unknown);
    assert.equal((await local.run('up', '--detach')).code, 0);
    assert.deepEqual([...left, orphan].filter(exists), []);
    assert.equal(existsSync(unknown), false);
    await local.api();
    const status = await local.podStatus('lost');
    assert.deepEqual([status.phase, status.reason], ['Failed', 'NodeRestart']);
    assert.equal(status.containerStatuses?.[0]?.state.terminated?.reason, 'ContainerStatusUnknown');
    assert.equal(await local.podLog('lost'), log);
    assert.equal(readFileSync(starts, 'utf8'), 'x\n');
  });

  test('down ends pods in good order, leaves no process, and a second down is no error', async () => {
    await local.pod('orderly', 'trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.05; done');
    await eventually(async () => (await local.podLog('orderly')) === 'ready\n', { what: 'it can be told to end' });
    assert.equal((await local.run('down')).code, 0);
    assert.deepEqual(local.processes(), []);
    assert.deepEqual(
      readdirSync(local.home).filter((name) => /lock|state|api-token/.test(name)),
      [],
    );
    assert.equal((await local.run('down')).code, 0);

    await local.run('up', '--detach');
    await local.api();
    const status = await local.podStatus('orderly');
    assert.deepEqual([status.phase, status.reason], ['Failed', 'Terminated']);
    assert.equal(await local.podLog('orderly'), 'ready\nbye\n');
  });

  test('down also ends what a killed cluster left', async () => {
    await local.pod('left', 'sleep 1000');
    process.kill((await local.status()).pid, 'SIGKILL');
    assert.equal((await local.run('down')).code, 0);
    assert.deepEqual(local.processes(), []);
  });

  test('the lock of a dead process is taken over, also when its pid is another process by now', async () => {
    const lock = { pid: process.pid, start: 1, bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() };
    writeFileSync(join(local.home, 'lock'), JSON.stringify(lock));
    assert.equal((await local.run('up', '--detach')).code, 0);
    assert.equal((await local.run('down')).code, 0);
  });

  test('a cluster whose files were replaced under it says so and ends, with all that it ran', async () => {
    const fresh = new LocalProgram();
    const { ended } = fresh.start('up');
    const { pid } = await eventually(() => fresh.status());
    const journal = join(fresh.home, 'cluster', 'objects.journal.jsonl');
    copyFileSync(journal, `${journal}.copy`);
    renameSync(`${journal}.copy`, journal);
    const api = await fresh.api();
    const made = await api.post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'unanswered-write' } });
    assert.equal(made.status, 500, made.text);
    const { code, stderr } = await ended;
    assert.equal(code, 1);
    assert.match(stderr, /objects\.journal\.jsonl is no longer this server's own/);
    assert.equal(exists(pid), false);
    assert.deepEqual(fresh.processes(), []);
    assert.ok(!readFileSync(journal, 'utf8').includes('unanswered-write'));
    await fresh.remove();
  });

  test('of several started at once one runs, the others are refused', async () => {
    const all = Array.from({ length: 4 }, () => local.start('up'));
    const { pid } = await eventually(() => local.status());
    const others = all.filter(({ child }) => child.pid !== pid);
    assert.equal(others.length, 3);
    for (const { ended } of others) assert.match((await ended).stderr, /already runs/);
    const one = all.find(({ child }) => child.pid === pid)!;
    await eventually(() => /not isolated/.test(one.stdout()), { what: 'what it says when it is ready' });
    one.child.kill('SIGINT');
    assert.equal((await one.ended).code, 0);
    assert.deepEqual(local.processes(), []);
  });

  test('a signal while it starts ends it and leaves nothing', async () => {
    // All over the start: each of them is made a little later than the one before.
    for (const made of ['', 'lock', 'cluster', 'kubeconfig', 'logs/controller.log', 'logs/api.log']) {
      const fresh = new LocalProgram();
      const { child, ended } = fresh.start('up');
      await eventually(() => existsSync(join(fresh.home, made)), { what: made });
      child.kill('SIGTERM');
      await ended;
      assert.deepEqual(fresh.processes(), [], `stopped when there was ${made || 'nothing'}`);
      await fresh.remove();
    }
  });

  test('a signal while its programs start ends them, and it ends as it was told to', async () => {
    // A program that was ready before the signal proves nothing: the test tries again.
    let said = 'ready';
    for (let tries = 0; tries < 10 && said; tries++) {
      const { child, ended, stdout } = local.start('up');
      await eventually(() => processesWith(`BERTH_LOCAL_HOME=${local.home}`).length > 0);
      child.kill('SIGTERM');
      assert.equal((await ended).code, 0);
      assert.deepEqual(local.processes(), []);
      said = stdout();
    }
    assert.equal(said, '', 'it never said that it was ready');
  });

  test('a port that is taken is told, and nothing is left', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const { code, stderr } = await local.run('up', '--detach', '--port', String(port));
    server.close();
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`port ${port}`));
    assert.deepEqual(local.processes(), []);
  });

  test('the next up uses the ports of the last one again, also named ones, and a copied kubeconfig stays valid', async () => {
    const [port, apiPort] = [await freePort(), await freePort()];
    assert.equal((await local.run('up', '--detach', '--port', `${port}`, '--api-port', `${apiPort}`)).code, 0);
    const before = await local.status();
    assert.deepEqual([before.url, before.apiUrl], [`https://127.0.0.1:${port}`, `http://127.0.0.1:${apiPort}`]);
    const copied = readFileSync(join(local.home, 'kubeconfig'), 'utf8');
    const token = JSON.parse(copied).users[0].user.token as string;
    assert.equal((await local.run('down')).code, 0);
    const { code, stderr } = await local.run('up', '--detach');
    assert.deepEqual([code, stderr], [0, '']);
    const { url, apiUrl } = await local.status();
    assert.deepEqual([url, apiUrl], [before.url, before.apiUrl]);
    assert.equal((await (await local.api()).get('/api/v1/namespaces', { token })).status, 200);
    assert.equal(readFileSync(join(local.home, 'kubeconfig'), 'utf8'), copied);
  });

  test('a port of the last up that somebody else has taken is replaced by a free one, and a line says so', async (t) => {
    const before = await local.status();
    assert.equal((await local.run('down')).code, 0);
    for (const url of [before.url, before.apiUrl]) {
      const somebody = createServer().listen(Number(new URL(url).port), '127.0.0.1');
      t.onTestFinished(() => void somebody.close());
      await once(somebody, 'listening');
    }
    const { code, stderr } = await local.run('up', '--detach');
    const { url, apiUrl } = await local.status();
    assert.equal(code, 0, stderr);
    const line = (old: string, what: string, now: string) =>
      `Port ${new URL(old).port} is taken by another program: ${what} is at ${now} from now on.\n`;
    assert.equal(stderr, line(before.url, 'the Kubernetes API', url) + line(before.apiUrl, 'the HTTP API', apiUrl));
    assert.equal((await (await local.api()).get('/api/v1/namespaces')).status, 200);
    assert.equal((await local.run('down')).code, 0);
  });

  test('wrong flags are refused with exit code 2 and the usage', async () => {
    for (const args of [['up', '--port', 'http'], ['up', '--detached'], ['sideways'], []]) {
      const { code, stderr } = await local.run(...args);
      assert.equal(code, 2, args.join(' '));
      assert.match(stderr, /Example: local up --detach/);
    }
    assert.equal((await local.run('--help')).code, 0);
  });
});
