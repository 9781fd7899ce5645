import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { StoredTurn } from '../../../core/resources/kinds.ts';
import { type Installation, ONE_LEADER, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const COUNTER = pythonAgent(`
path = state + '/count'
count = int(open(path).read()) + 1 if os.path.exists(path) else 1
open(path, 'w').write(str(count))
print('some noise')
answer({'count': count, 'input': request['input'], 'incarnation': request['session']['incarnation']})
print('more noise')
`);

describe('sessions on the embedded cluster', () => {
  const cluster = installed(ONE_LEADER, { controller: true });

  test('a turn runs in a pod and its answer is in its status', async () => {
    await cluster.create('first', { agent: COUNTER });
    await cluster.turn('first', 'first-1', { n: 3 });
    const turn = await cluster.ended('first-1');
    assert.equal(turn.status?.phase, 'Succeeded', JSON.stringify(turn.status));
    assert.deepEqual(turn.status?.output, { count: 1, input: { n: 3 }, incarnation: 1 });
    assert.equal(turn.status?.log?.inline, 'some noise\nmore noise\n');
  });

  test('a suspended session has no process, and its next turn wakes it with its state', async () => {
    await cluster.create('sleeper', { agent: COUNTER });
    await cluster.turn('sleeper', 'sleeper-1', null);
    await cluster.ended('sleeper-1');
    await cluster.patch('sleeper', { suspendRequest: 'now' });
    const suspended = await cluster.until('sleeper', 'suspended', (session) => session.status?.phase === 'Suspended');
    assert.deepEqual(suspended.status?.suspendHandled, { id: 'now', afterTurn: 1, done: true });
    assert.equal(suspended.status?.podName, undefined);
    assert.deepEqual(await cluster.podsOf('sleeper'), []);
    await cluster.turn('sleeper', 'sleeper-2', null);
    const turn = await cluster.ended('sleeper-2');
    assert.deepEqual(turn.status?.output, { count: 2, input: null, incarnation: 2 });
    // The request was for the turns given before it: this one is not suspended again.
    await cluster.until('sleeper', 'counted', ({ status }) => status?.turns?.total === 2);
    await cluster.turn('sleeper', 'sleeper-3', null);
    const next = await cluster.ended('sleeper-3');
    assert.deepEqual(next.status?.output, { count: 3, input: null, incarnation: 2 });
  });

  test('reading a suspended session does not wake it', async () => {
    await cluster.create('looked-at', { agent: COUNTER, suspendRequest: 'x' });
    await cluster.turn('looked-at', 'looked-at-1', null);
    await cluster.ended('looked-at-1');
    await cluster.patch('looked-at', { suspendRequest: 'y' });
    const before = await cluster.until('looked-at', 'suspended', ({ status }) => {
      const { id, done } = status?.suspendHandled ?? {};
      return status?.phase === 'Suspended' && id === 'y' && done === true;
    });
    for (let i = 0; i < 20; i++)
      assert.equal((await cluster.session('looked-at')).metadata.resourceVersion, before.metadata.resourceVersion);
  });

  test('under a hold turns queue, and run when it is lifted', async () => {
    await cluster.create('held', { agent: COUNTER, suspend: true });
    await cluster.turn('held', 'held-1', 'a');
    // The turn is Held once its session was seen. The controller may see the turn first.
    const held = ({ status }: StoredTurn) =>
      status?.conditions?.some(({ type, reason }) => type === 'Finished' && reason === 'Held');
    const queued = await cluster.turnUntil('held-1', 'held', (turn) => held(turn) === true);
    assert.equal(queued.status?.phase, 'Queued');
    assert.deepEqual(await cluster.podsOf('held'), []);
    await cluster.patch('held', { suspend: false });
    assert.equal((await cluster.ended('held-1')).status?.phase, 'Succeeded');
  });

  test('a session of one turn is a whole run in one object, and gives up its pod', async () => {
    await cluster.create('whole', { agent: COUNTER, turns: 'One', input: { nested: { nothing: null } } });
    const turn = await cluster.ended('whole');
    assert.deepEqual(turn.status?.output, { count: 1, input: { nested: { nothing: null } }, incarnation: 1 });
    const session = await cluster.until(
      'whole',
      'without a pod',
      ({ status }) => status?.phase === 'Finished' && !status.podName,
    );
    assert.equal(session.status?.conditions?.find(({ type }) => type === 'Finished')?.status, 'True');
    await cluster.turn('whole', 'whole-2', null);
    assert.equal((await cluster.ended('whole-2')).status?.error?.code, 'SessionFinished');
  });

  test('turns run one after the other in the order in which they were given', async () => {
    await cluster.create('ordered', { agent: COUNTER });
    for (let i = 1; i <= 6; i++) await cluster.turn('ordered', `ordered-${i}`, i);
    const outputs = [];
    for (let i = 1; i <= 6; i++) outputs.push((await cluster.ended(`ordered-${i}`)).status?.output);
    assert.deepEqual(
      outputs.map((output) => (output as { count: number }).count),
      [1, 2, 3, 4, 5, 6],
    );
    const session = await cluster.until('ordered', 'counted', ({ status }) => status?.turns?.total === 6);
    assert.equal(session.status?.lastTurn?.name, 'ordered-6');
  });

  test('an output beyond 16 KiB and a state beyond 8 KiB arrive whole', async () => {
    const big = pythonAgent(`
path = state + '/data'
if request['input'] == 'write':
    open(path, 'wb').write(os.urandom(300000))
import hashlib
answer({'digest': hashlib.sha256(open(path, 'rb').read()).hexdigest(), 'text': 'x' * 200000})
`);
    await cluster.create('big', { agent: big });
    await cluster.turn('big', 'big-1', 'write');
    const first = await cluster.ended('big-1');
    assert.equal(first.status?.phase, 'Succeeded', first.status?.error?.message);
    assert.ok(first.status?.outputRef && first.status.state?.ref);
    await cluster.patch('big', { suspendRequest: 'x' });
    await cluster.until('big', 'suspended', (session) => session.status?.phase === 'Suspended');
    await cluster.turn('big', 'big-2', 'read');
    const second = await cluster.ended('big-2');
    assert.deepEqual(await cluster.output(second), await cluster.output(first));
    assert.equal((await cluster.output<{ text: string }>(second)).text.length, 200000);
  });
});

describe('errors of sessions and turns', () => {
  const cluster = installed(ONE_LEADER, { controller: true });
  const SLOW = pythonAgent(`
if request['input'] == 'slow':
    open(state + '/started', 'w').write('x')
    time.sleep(60)
answer(sorted(os.listdir(state)))
`);

  test('a pod that is killed in a turn gives PodLost, and the next turn goes on from the last stored state', async () => {
    await cluster.create('lossy', { agent: SLOW });
    await cluster.turn('lossy', 'lossy-1', 'quick');
    await cluster.ended('lossy-1');
    await cluster.turn('lossy', 'lossy-2', 'slow');
    await cluster.until('lossy', 'runs lossy-2', ({ status }) => status?.currentTurn === 'lossy-2');
    const [pod] = await cluster.podsOf('lossy');
    await cluster.kill(pod!);
    const lost = await cluster.ended('lossy-2');
    assert.equal(lost.status?.error?.code, 'PodLost');
    await cluster.event('lossy', 'PodLost');
    await cluster.turn('lossy', 'lossy-3', 'quick');
    const next = await cluster.ended('lossy-3');
    assert.deepEqual(next.status?.output, []);
    assert.equal(next.status?.incarnation, 2);
  });

  test('a running turn is cancelled', async () => {
    await cluster.create('cancelled', { agent: SLOW });
    await cluster.turn('cancelled', 'cancelled-1', 'slow');
    await cluster.until('cancelled', 'running', ({ status }) => status?.phase === 'Running');
    await cluster.cancel('cancelled-1');
    const turn = await cluster.ended('cancelled-1');
    assert.equal(turn.status?.phase, 'Cancelled');
    await cluster.turn('cancelled', 'cancelled-2', 'quick');
    assert.equal((await cluster.ended('cancelled-2')).status?.incarnation, 1);
  });

  test('a queued turn is cancelled without having run', async () => {
    await cluster.create('cancelled-early', { agent: SLOW, suspend: true });
    await cluster.turn('cancelled-early', 'cancelled-early-1', null);
    await cluster.cancel('cancelled-early-1');
    const turn = await cluster.ended('cancelled-early-1');
    assert.equal(turn.status?.phase, 'Cancelled');
    assert.equal(turn.status?.startedAt, undefined);
  });

  test('a turn is stopped at its timeout', async () => {
    await cluster.create('late', { agent: SLOW, timeouts: { turn: '1s' } });
    await cluster.turn('late', 'late-1', 'slow');
    assert.equal((await cluster.ended('late-1')).status?.phase, 'TimedOut');
    await cluster.turn('late', 'late-2', 'slow', { timeout: '500ms' });
    assert.match((await cluster.ended('late-2')).status?.error?.message ?? '', /500/);
  });

  /** File that no user can execute, on every machine. */
  const FILE = '/proc/version';
  const broken: [string, Parameters<Installation['create']>[1], string, RegExp][] = [
    [
      'a program that does not exist',
      { agent: { command: ['/no/such/program'] } },
      'CommandNotFound',
      /no\/such\/program/,
    ],
    ['a program that is not executable', { agent: { command: [FILE] } }, 'CommandNotExecutable', /\/proc\/version/],
    [
      'a working directory that is a file',
      { agent: { command: ['true'], workingDir: FILE } },
      'WorkingDirInvalid',
      /\/proc\/version/,
    ],
    [
      'an agent that says nothing',
      { agent: { command: ['true'] } },
      'MissingEnvelope',
      /without a result; its stdout is empty\. Print/,
    ],
    [
      'an agent that ends with an exit code',
      { agent: { command: ['sh', '-c', 'echo token=abcdef >&2; exit 3'] } },
      'AgentFailed',
      /exit code 3.*token=\[REDACTED\]/s,
    ],
    [
      'a setting that the class does not allow',
      { class: 'strict', agent: { command: ['true'] } },
      'NotAllowed',
      /spec\.agent\.command/,
    ],
  ];
  test('settings that cannot work fail with the field or file and the error', async () => {
    await cluster.createClass('strict', { overrides: [] });
    for (const [what, spec, code, message] of broken) {
      const name = `broken-${code.toLowerCase()}`;
      await cluster.create(name, spec);
      await cluster.turn(name, name, null);
      const { error } = (await cluster.ended(name)).status ?? {};
      assert.equal(error?.code, code, `${what}: ${error?.message}`);
      assert.match(error?.message ?? '', message, what);
    }
  });

  test('a turn given by kubectl that asks for more than the class allows ends as NotAllowed and runs nothing', async () => {
    await cluster.createClass('bounded', { overrides: ['agent.command', 'timeouts'], maxTimeouts: { turn: '1h' } });
    await cluster.create('bounded', { class: 'bounded', agent: { command: ['true'] } });
    await cluster.turn('bounded', 'bounded-long', null, { timeout: '999h' });
    const { error, startedAt } = (await cluster.ended('bounded-long')).status ?? {};
    assert.deepEqual([error?.code, startedAt], ['NotAllowed', undefined]);
    assert.match(error?.message ?? '', /^spec\.timeout: 999h is more than the 1h that the class allows; ask for less/);
  });

  test('a class that does not exist is said in a condition and an event, and may still come', async () => {
    await cluster.create('early', { class: 'later', agent: SLOW });
    await cluster.turn('early', 'early-1', 'quick');
    const session = await cluster.until('early', 'judged', ({ status }) => status?.phase === 'Queued');
    const admitted = session.status?.conditions?.find(({ type }) => type === 'Admitted');
    assert.equal(admitted?.reason, 'ClassNotFound');
    await cluster.event('early', 'ClassNotFound');
    await cluster.createClass('later', { overrides: ['agent.command'] });
    assert.equal((await cluster.ended('early-1')).status?.phase, 'Succeeded');
  });

  test('an image that cannot be had is said in a condition and an event, and ends with the timeout', async () => {
    // The turn is granted this time when it begins; a later edit does not count for it.
    await cluster.create('imageless', { image: 'no.such/image:1', agent: SLOW, timeouts: { start: '5s' } });
    await cluster.turn('imageless', 'imageless-1', 'quick');
    const turn = await cluster.ended('imageless-1');
    assert.equal(turn.status?.error?.code, 'ImageUnavailable');
    assert.match(turn.status?.error?.message ?? '', /no\.such\/image:1/);
    await cluster.event('imageless', 'ImageUnavailable');
    const session = await cluster.until('imageless', 'without a pod', ({ status }) => !status?.podName);
    assert.equal(session.status?.conditions?.find(({ type }) => type === 'Ready')?.reason, 'ImageUnavailable');
  });

  test('a deleted session takes its turns, its pod and its processes with it', async () => {
    await cluster.create('deleted', { agent: SLOW });
    await cluster.turn('deleted', 'deleted-1', 'slow');
    await cluster.until('deleted', 'running', ({ status }) => status?.phase === 'Running');
    const [pod] = await cluster.podsOf('deleted');
    await cluster.delete('deleted');
    await cluster.gone('deleted', pod!);
  });

  test('a turn without a session waits and says so', async () => {
    await cluster.turn('nobody', 'orphan', null);
    const turn = await cluster.turnUntil('orphan', 'queued', ({ status }) => status?.phase === 'Queued');
    assert.equal(turn.status?.conditions?.[0]?.reason, 'SessionNotFound');
    assert.match(turn.status?.conditions?.[0]?.message ?? '', /create it, then give the turn again/);
    await cluster.cancel('orphan');
    assert.equal((await cluster.ended('orphan')).status?.phase, 'Cancelled');
  });
});
