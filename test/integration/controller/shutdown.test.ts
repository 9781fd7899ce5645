import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, test } from 'vitest';
import { leases } from '../../../core/kube/resources.ts';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { eventually } from '../../support/eventually.ts';
import { type ControllerProcess, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

/**
 * Upper bound of a stop, below every limit that the controller waits for. A stop takes 9 s at most on an idle machine.
 */
const OUT_MS = 40_000;

describe('a controller that is told to stop', () => {
  const cluster = installed({ BERTH_LEASE_DURATION: '60s' });
  let scratch: string;
  const running: ControllerProcess[] = [];
  beforeAll(() => {
    scratch = mkdtempSync(join(tmpdir(), 'berth-shutdown-'));
  });
  afterAll(() => {
    rmSync(scratch, { recursive: true, force: true });
  });
  afterEach(async () => {
    cluster.server.faults.delayMs = 0;
    await Promise.all(running.splice(0).map((controller) => controller.kill('SIGKILL')));
    // The next test's controller would wait for it to expire.
    await cluster.freeLease();
  });

  /** Writes every execution down where a test can see it, and then works for as long as the input says, or until it is released. */
  const agent = () =>
    pythonAgent(`
with open('${scratch}/' + request['session']['name'], 'a') as f:
    f.write(request['turn']['name'] + chr(10))
while request['input'] == 'until released' and not os.path.exists('${scratch}/' + request['turn']['name'] + '-released'):
    time.sleep(0.02)
time.sleep(request['input'] if request['input'] != 'until released' else 0)
open(state + '/large', 'wb').write(os.urandom(30000))
open('${scratch}/' + request['turn']['name'], 'w').close()
answer(request['turn']['name'])
`);
  const executions = (session: string) => readFileSync(join(scratch, session), 'utf8').trim().split('\n');
  const logged = (controller: ControllerProcess, message: string, times = 1) =>
    eventually(() => controller.log().split(`"msg":"${message}"`).length > times, {
      what: `"${message}" logged`,
      timeoutMs: 40_000,
    });

  function start(env: Record<string, string> = {}): ControllerProcess {
    const controller = cluster.startController(env);
    running.push(controller);
    return controller;
  }
  async function leaderAndStandby(env: Record<string, string> = {}) {
    const leader = start(env);
    await logged(leader, 'leading');
    const standby = start(env);
    await logged(standby, 'controller started');
    return { leader, standby };
  }
  /** Resolves with the milliseconds that it took. */
  async function terminate(controller: ControllerProcess): Promise<number> {
    const before = performance.now();
    await controller.kill('SIGTERM');
    return performance.now() - before;
  }

  test('while a turn runs leaves it running, and its successor leads at once and commits it once', async () => {
    const { leader, standby } = await leaderAndStandby();
    await cluster.create('working', { agent: agent() });
    await cluster.turn('working', 'working-1', 'until released');
    await cluster.turn('working', 'working-2', 0);
    await cluster.turnUntil('working-1', 'runs', ({ status }) => status?.phase === 'Running');
    await eventually(() => executions('working').length === 1);
    assert.ok((await terminate(leader)) < OUT_MS);
    assert.equal(leader.child.exitCode, 0);
    // The lease would have lasted for a minute.
    await logged(standby, 'leading');
    writeFileSync(join(scratch, 'working-1-released'), '');
    for (const name of ['working-1', 'working-2']) assert.equal((await cluster.ended(name)).status?.output, name);
    assert.deepEqual(executions('working'), ['working-1', 'working-2']);
    const { status } = await cluster.until('working', 'counted', (session) => session.status?.turns?.total === 2);
    assert.equal(status?.turns?.succeeded, 2);
  });

  test('gives its lease free, and its successor leads at once, however long it would have lasted', async () => {
    const env = { BERTH_LEASE_DURATION: '10m' };
    const leader = start(env);
    await logged(leader, 'leading');
    let looks = 0;
    const look = ({ resource, verb }: RequestFacts) => resource === 'leases' && verb === 'get' && ++looks < 0;
    cluster.server.faults.delayNext(look, 0);
    const standby = start(env);
    // A standby without a watch polls a lease of this duration every 75 s.
    await eventually(() => looks > 0);
    await terminate(leader);
    await logged(standby, 'leading');
    assert.match(standby.log(), /"takenOver":false/);
  });

  test('while every call hangs is out in time all the same, and its successor commits the turn once', async () => {
    const { leader } = await leaderAndStandby({ BERTH_LEASE_DURATION: '12s' });
    await cluster.create('hanging', { agent: agent() });
    await cluster.turn('hanging', 'hanging-1', 'until released');
    await eventually(() => executions('hanging').length === 1);
    // Requests to the API server now take longer than the controller waits, the commit first of all.
    cluster.server.faults.delayMs = 60_000;
    writeFileSync(join(scratch, 'hanging-1-released'), '');
    await eventually(() => existsSync(join(scratch, 'hanging-1')));
    assert.ok((await terminate(leader)) < OUT_MS);
    assert.equal(leader.child.exitCode, 0, leader.log());
    assert.ok(!leader.log().includes('turn committed'));
    cluster.server.faults.delayMs = 0;
    assert.equal((await cluster.ended('hanging-1')).status?.output, 'hanging-1');
    assert.deepEqual(executions('hanging'), ['hanging-1']);
  });

  test('while a write hangs leaves its lease to expire, as that may take effect yet', async () => {
    const leader = start();
    await logged(leader, 'leading');
    await cluster.create('unsure', { agent: agent() });
    await cluster.turn('unsure', 'unsure-1', 'until released');
    await eventually(() => executions('unsure').length === 1, { what: 'the turn runs' });
    let hanging = 0;
    const isCommit = ({ name, subresource }: RequestFacts) => name === 'unsure-1' && subresource === 'status';
    cluster.server.faults.delayNext((request) => isCommit(request) && ++hanging > 0, 60_000);
    writeFileSync(join(scratch, 'unsure-1-released'), '');
    await eventually(() => hanging > 0, { what: 'its commit is on its way' });
    assert.ok((await terminate(leader)) < OUT_MS);
    assert.equal(leader.child.exitCode, 0, leader.log());
    const lease = await cluster.client.get(leases, { namespace: 'berth-system', name: 'berth-controller' });
    assert.ok(lease.spec?.holderIdentity, 'nobody is to lead before the write must be dead');
  });

  test('while the store hangs gives its lease free after the grace, with nothing lost', async () => {
    const { leader, standby } = await leaderAndStandby();
    const { faults } = cluster.server;
    const full = {
      code: 503,
      reason: 'ServiceUnavailable',
      message: 'the store is slow',
      details: { retryAfterSeconds: 3600 },
    };
    let refused = 0;
    faults.failNext(({ resource, verb }) => resource === 'blobs' && verb === 'create' && ++refused > 0, full);
    await cluster.create('slow', { agent: agent() });
    await cluster.turn('slow', 'slow-1', 0);
    await eventually(() => refused > 0, { what: 'the store has told the leader to wait for an hour' });
    assert.ok((await terminate(leader)) < OUT_MS);
    assert.equal(leader.child.exitCode, 0);
    await logged(standby, 'leading');
    assert.equal((await cluster.ended('slow-1')).status?.output, 'slow-1');
    assert.deepEqual(executions('slow'), ['slow-1']);
  });

  test('with nothing to do, while its lease cannot be given free, is out in time all the same', async () => {
    const { leader } = await leaderAndStandby();
    cluster.server.faults.delayMs = 60_000;
    assert.ok((await terminate(leader)) < OUT_MS);
    assert.equal(leader.child.exitCode, 0, leader.log());
  });

  test('before it has led ends without an error', async () => {
    cluster.server.faults.delayMs = 300;
    const controller = start();
    await logged(controller, 'controller started');
    assert.ok((await terminate(controller)) < OUT_MS);
    assert.equal(controller.child.exitCode, 0, controller.log());
  });

  test('killed instead is replaced when its lease has run out', async () => {
    const { leader, standby } = await leaderAndStandby({ BERTH_LEASE_DURATION: '2s' });
    await cluster.create('killed', { agent: agent() });
    await cluster.turn('killed', 'killed-1', 1);
    await eventually(() => executions('killed').length === 1);
    await leader.kill('SIGKILL');
    await logged(standby, 'leading');
    assert.equal((await cluster.ended('killed-1')).status?.output, 'killed-1');
    assert.deepEqual(executions('killed'), ['killed-1']);
  });

  test('stopped by SIGSTOP answers no probe, and answers again once it continues', async () => {
    const controller = start();
    await logged(controller, 'controller started');
    const { port } = JSON.parse(/"health":({.*?})/.exec(controller.log())?.[1] ?? '{}') as { port: number };
    const probe = () =>
      fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(1000) }).then(
        ({ status }) => status,
        (error: Error) => error.name,
      );
    await eventually(async () => (await probe()) === 200, { what: 'it answers' });
    controller.child.kill('SIGSTOP');
    assert.equal(await probe(), 'TimeoutError');
    controller.child.kill('SIGCONT');
    assert.equal(await eventually(async () => (await probe()) === 200), true);
  });
});
