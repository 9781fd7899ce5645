import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { VERSION } from '../../../core/program/version.ts';
import { sessionclasses, sessions, turns } from '../../../core/resources/kinds.ts';
import type { SessionStatus } from '../../../core/resources/session.ts';
import type { SessionClassSpec } from '../../../core/resources/sessionclass.ts';
import { eventually } from '../../support/eventually.ts';
import { ActedCluster, condition } from './acted.ts';

const ready = condition('Ready', 'True', 'Ready');
const inPod = (number: number, more: Partial<SessionStatus> = {}): SessionStatus => ({
  phase: 'Ready',
  incarnation: number,
  podName: `pod-${number}`,
  conditions: [ready],
  ...more,
});

describe('berth restart of many sessions', () => {
  let cluster: ActedCluster;
  beforeAll(async () => {
    cluster = await ActedCluster.start();
    const spec = { runner: 'Embedded', image: 'own:1', overrides: ['agent.command'] } as SessionClassSpec;
    const object = { apiVersion: 'berth.dev/v1alpha1', kind: 'SessionClass', metadata: { name: 'own-image' }, spec };
    await cluster.server.store.create(sessionclasses, object);
  });
  afterAll(() => cluster.close());

  const asked = async (name: string) => {
    const { spec } = await cluster.server.store.get(sessions, { namespace: 'default', name });
    return spec.restartRequest !== undefined;
  };
  const untilAsked = (name: string) => eventually(() => asked(name), { what: `${name} is asked to restart` });
  /** A session of a group of its own test, with a pod. */
  const session = async (group: string, name: string, status: SessionStatus, spec = {}) => {
    await cluster.session(name, spec, { group });
    await cluster.say(name, status);
  };
  /** What a command printed, as outcomes by session. */
  const outcomes = (stdout: string) =>
    Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
        .map(({ session, outcome }) => [session, outcome]),
    );

  test('asks at most --max of them at a time, those without a running turn first, and goes on as each is ready again or has no pod', async () => {
    await session('max', 'max-busy', inPod(1, { phase: 'Running', currentTurn: 'long' }));
    for (const name of ['max-a', 'max-b', 'max-c']) await session('max', name, inPod(1));
    await session('max', 'max-none', { phase: 'Suspended' });
    const { ended, says } = cluster.start('restart', '-l', 'group=max', '--max', '2', '-o', 'json');
    await Promise.all(['max-a', 'max-b'].map(untilAsked));
    assert.deepEqual(await Promise.all(['max-c', 'max-busy'].map(asked)), [false, false]);
    await cluster.say('max-a', { podName: null, conditions: [condition('Ready', 'False', 'NoPod')] } as never);
    await untilAsked('max-c');
    await cluster.say('max-b', {
      podName: 'pod-2',
      incarnation: 2,
      conditions: [condition('Ready', 'False', 'Starting')],
    });
    await cluster.say('max-c', inPod(2));
    await untilAsked('max-busy');
    await cluster.say('max-b', inPod(2));
    await says(/waiting: session max-busy: turn long ends first\n/);
    await cluster.say('max-busy', inPod(2));
    const { code, stdout, stderr } = await ended;
    assert.equal(code, 0, stderr);
    const restarted = ['max-a', 'max-b', 'max-c', 'max-busy'].map((name) => [name, 'Restarted']);
    assert.deepEqual(outcomes(stdout), Object.fromEntries(restarted));
    assert.match(stderr, /4 selected: 4 restarted\n$/);
    assert.equal(await asked('max-none'), false);
  });

  test('asks for no more once a new pod does not start, and ends with 1', async () => {
    for (const name of ['bad-a', 'bad-b']) await session('bad', name, inPod(1));
    const { ended } = cluster.start('restart', '-l', 'group=bad', '--max', '1');
    await untilAsked('bad-a');
    const at = '2026-01-01T00:00:00Z';
    const startFailures = {
      count: 1,
      reason: 'ImageUnavailable',
      message: 'No such tag.',
      since: at,
      at,
      incarnation: 2,
    };
    await cluster.say('bad-a', {
      podName: 'pod-2',
      startFailures,
      conditions: [condition('Ready', 'False', 'Starting')],
    });
    const { code, stdout, stderr } = await ended;
    assert.equal(code, 1, stderr);
    assert.equal(
      stdout,
      'session.berth.dev/bad-a its new pod does not start: ImageUnavailable: No such tag.\nsession.berth.dev/bad-b not asked to restart\n',
    );
    assert.match(stderr, /2 selected: 1 failed, 1 not asked\n$/);
    assert.equal(await asked('bad-b'), false);
  });

  test('ends the asking on Ctrl-C, says what it has done, and leaves the requests', async () => {
    for (const name of ['int-a', 'int-b', 'int-c']) await session('int', name, inPod(1));
    const { child, ended, says } = cluster.start('restart', '-l', 'group=int', '--max', '1', '-o', 'json');
    await untilAsked('int-a');
    await cluster.say('int-a', inPod(2));
    await untilAsked('int-b');
    await says(/"int-a"/);
    child.kill('SIGINT');
    const { code, stdout } = await ended;
    assert.equal(code, 130);
    assert.deepEqual(outcomes(stdout), { 'int-a': 'Restarted', 'int-b': 'Asked', 'int-c': 'NotAsked' });
    assert.equal(await asked('int-c'), false);
  });

  test('with --now cancels the running turn, and no turn that waits', async () => {
    await session('now', 'now-a', inPod(1, { phase: 'Running', currentTurn: 'now-a-1' }));
    for (const name of ['now-a-1', 'now-a-2']) await cluster.turn(name, 'now-a');
    await cluster.end('now-a-1', { phase: 'Running', index: 1 });
    const { ended } = cluster.start('restart', '-l', 'group=now', '--now', '-o', 'name');
    const cancelled = async (name: string) =>
      (await cluster.server.store.get(turns, { namespace: 'default', name })).spec.cancel === true;
    await eventually(() => cancelled('now-a-1'), { what: 'the running turn is cancelled' });
    await cluster.say('now-a', inPod(2));
    const { code, stdout, stderr } = await ended;
    assert.deepEqual([code, stdout], [0, 'session.berth.dev/now-a\n'], stderr);
    assert.equal(await cancelled('now-a-2'), false);
  });

  test('selects by --outdated sessions of another runner or with the condition, but for images with a runner of their own', async () => {
    const outdated = condition('Outdated', 'True', 'ClassChanged');
    await session('old', 'old-class', inPod(1, { runnerVersion: VERSION, conditions: [ready, outdated] }));
    await session('old', 'old-runner', inPod(1, { runnerVersion: '0.0.1' }));
    await session('old', 'old-image', inPod(1, { runnerVersion: '0.0.1' }), { class: 'own-image' });
    await session('old', 'old-not', inPod(1, { runnerVersion: VERSION }));
    const { code, stdout, stderr } = await cluster.berth('restart', '--outdated', '-l', 'group=old', '--dry-run', '-A');
    assert.equal(code, 0, stderr);
    assert.equal(
      stdout,
      `default: session.berth.dev/old-class would restart: ClassChanged\ndefault: session.berth.dev/old-runner would restart: runner 0.0.1, installed is ${VERSION}\n`,
    );
    assert.equal(await asked('old-class'), false);
  });

  test('selects by --class, and skips a session that is replaced meanwhile or whose class does not allow it any more', async () => {
    await session('class', 'class-a', inPod(1), { class: 'own-image' });
    await session('class', 'class-b', inPod(1), { class: 'own-image', priority: 1, agent: { env: [] } });
    await session('class', 'class-c', inPod(1));
    const { ended } = cluster.start('restart', '--class', 'own-image', '-l', 'group=class', '--max', '1', '-o', 'json');
    await untilAsked('class-a');
    await cluster.remove('class-a');
    const { code, stdout, stderr } = await ended;
    assert.equal(code, 1, stderr);
    assert.deepEqual(outcomes(stdout), { 'class-a': 'Gone', 'class-b': 'Refused' });
  });

  test('refuses flags that do not go together, and no selection at all', async () => {
    for (const [words, refusal] of [
      [[], /name a session, or select some/],
      [['max-a', '--outdated'], /--outdated is for many sessions/],
      [['-l', 'a=b', '--no-wait'], /--no-wait is for one session/],
    ] as const) {
      const { code, stderr } = await cluster.berth('restart', ...words);
      assert.deepEqual([code, refusal.test(stderr)], [2, true], stderr);
    }
    const none = await cluster.berth('restart', '-l', 'group=nothing');
    assert.deepEqual([none.code, none.stdout], [0, ''], none.stderr);
    assert.match(none.stderr, /no session of namespace default with a pod is selected/);
  });
});
