import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { namespaces } from '../../../core/kube/resources.ts';
import type { Stored } from '../../../core/kube/types.ts';
import {
  type Session,
  type SessionClass,
  sessionclasses,
  sessions,
  type Turn,
  turns,
} from '../../../core/resources/kinds.ts';
import { installManifests } from '../../../local/manifests.ts';
import { type TestServer, testServer } from '../../support/api-server.ts';
import { eventually } from '../../support/eventually.ts';
import { Caller } from './support.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const NAMESPACE = 'default';
const condition = (type: string, status: 'True' | 'False', reason: string, message: string) => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

/** The test acts as the controller, so that it decides when every answer comes. */
describe('waiting for a turn', () => {
  const caller = new Caller(ROOT);
  let server: TestServer;
  const env = { KUBECONFIG: join(caller.root, 'kubeconfig') };
  beforeAll(async () => {
    server = await testServer();
    await installManifests(server.store, [join(ROOT, 'manifests'), join(ROOT, 'manifests', 'embedded')]);
    writeFileSync(env.KUBECONFIG, JSON.stringify(server.kubeconfig('test-admin')));
  });
  afterAll(async () => {
    await server.close();
    caller.remove();
  });

  const run = (name: string, ...flags: string[]) =>
    caller.start(['run', '--name', name, ...flags, '--result', 'json', '--', 'true'], { env });
  const given = (name: string): Promise<Stored<Turn>> =>
    eventually(() => server.store.get(turns, { namespace: NAMESPACE, name }), { what: 'the turn is created' });
  const end = (name: string, status: Turn['status'] = { phase: 'Succeeded', output: name }) =>
    server.store.patch(turns, { namespace: NAMESPACE, name }, { status }, { subresource: 'status' });
  const say = (name: string, status: Session['status']) =>
    server.store.patch(sessions, { namespace: NAMESPACE, name }, { status }, { subresource: 'status' });

  const says = (child: ChildProcess, text: RegExp) => {
    let told = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      told += chunk;
    });
    return eventually(() => text.test(told), { what: `the command says ${text}` });
  };
  /** Waits until the command has its answers: a Ctrl-C before that deletes the session. */
  const waits = (name: string, child: ChildProcess) => says(child, new RegExp(`session ${name}\n`));

  test('the turn belongs to its session and has the timeout and input of the flags', async () => {
    const { ended } = run('owned', '--timeout', '5s', '--input', '{"a": 1}');
    const turn = await given('owned');
    const session = await server.store.get(sessions, { namespace: NAMESPACE, name: 'owned' });
    const spec = { session: 'owned', cancel: false, input: { a: 1 }, timeout: '5s', requester: 'admin' };
    assert.deepEqual(turn.spec, spec);
    assert.equal(turn.metadata.ownerReferences?.[0]?.uid, session.metadata.uid);
    await end('owned');
    assert.deepEqual(await ended.then(({ code, stdout }) => [code, stdout]), [0, 'owned\n']);
  });

  test('the turn may be begun as often as --attempts says, within what a Turn allows', async () => {
    const { ended } = run('again', '--attempts', '3');
    assert.deepEqual((await given('again')).spec.retry, { maxAttempts: 3 });
    await end('again');
    assert.equal((await ended).code, 0);
    for (const many of ['0', '11', '1.5', 'x']) {
      const { code, stderr } = await run('never', '--attempts', many).ended;
      assert.equal(code, 2);
      assert.match(stderr, /whole number from 1 to 10/);
    }
  });

  test('says on stderr why it takes long: no controller, a full cluster', async () => {
    const { child, ended } = run('slow');
    let told = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      told += chunk;
    });
    await given('slow');
    await eventually(() => /no controller has seen session slow/.test(told), {
      what: 'the missing controller is told',
    });
    await say('slow', { conditions: [condition('Admitted', 'False', 'AtCapacity', 'All 4 places are taken.')] });
    await eventually(() => /waiting: AtCapacity: All 4 places/.test(told), { what: 'the full cluster is told' });
    await end('slow');
    assert.equal((await ended).code, 0);
  });

  const createClass = (name: string, spec: object) =>
    server.store.create(sessionclasses, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'SessionClass',
      metadata: { name },
      spec: spec as SessionClass['spec'],
    });

  test('a setting that the class does not allow is refused at once, by its flag and its field, and nothing is created', async () => {
    await createClass('narrow', {
      agent: { command: ['true'] },
      overrides: ['timeouts'],
      maxTimeouts: { turn: '1m' },
    });
    const refused: [string[], RegExp][] = [
      [['--env', 'A=b'], /--env sets spec\.agent\.env: the class does not allow .* leave it out, or have "agent\.env"/],
      [['--image', 'x'], /--image sets spec\.image: the class does not allow/],
      [['--timeout', '2m'], /--timeout sets spec\.timeouts\.turn: 2m is more than the 1m that the class allows/],
      [['--', 'false'], /-- PROGRAM sets spec\.agent\.command: .* \(class "narrow"\)/],
    ];
    for (const [flags, message] of refused) {
      const { code, stderr } = await caller.berth(['create', 'forbidden', '--class', 'narrow', ...flags], { env });
      assert.equal(code, 2);
      assert.match(stderr, message);
    }
    assert.equal(
      await server.store.get(sessions, { namespace: NAMESPACE, name: 'forbidden' }).catch(() => 'none'),
      'none',
    );
    const { code } = await caller.berth(['create', 'allowed', '--class', 'narrow', '--timeout', '30s'], { env });
    assert.equal(code, 0);
    for (const command of [
      ['turn', 'allowed'],
      ['run', '--class', 'narrow'],
    ]) {
      const { code, stderr } = await caller.berth([...command, '--timeout', '2m'], { env });
      assert.equal(code, 2);
      assert.match(stderr, /--timeout sets spec\.timeout: 2m is more than the 1m that the class allows/);
    }
    const { items } = await server.store.list(turns, { namespace: NAMESPACE });
    assert.deepEqual(
      items.filter(({ spec }) => spec.session === 'allowed'),
      [],
    );
  });

  test('the caller’s directory is left out where the class does not let sessions set one', async () => {
    await createClass('placed', { overrides: ['agent.command', 'agent.args'] });
    const { stderr, code } = await caller.berth(['create', 'placed', '--class', 'placed', '--', 'true'], { env });
    assert.deepEqual([code, stderr], [0, '']);
    const { spec } = await server.store.get(sessions, { namespace: NAMESPACE, name: 'placed' });
    assert.deepEqual(Object.keys(spec.agent ?? {}), ['command', 'args']);
  });

  test('a program is asked for only where the class needs one: not by Shell, Tools or an image without a runner', async () => {
    const create = async (name: string, spec: object) => {
      await createClass(name, spec);
      return caller.berth(['create', name, '--class', name], { env });
    };
    const tools = [{ name: 'date', description: 'tells the time', parameters: { type: 'object' }, command: ['date'] }];
    const free: [string, object][] = [
      ['shell', { agent: { driver: 'Shell' } }],
      ['tools', { agent: { driver: 'Tools', tools } }],
      ['image', { runner: 'None', image: 'report:3' }],
      ['own', { agent: { command: ['true'] } }],
    ];
    for (const [name, spec] of free) assert.equal((await create(name, spec)).stderr, '');
    for (const [name, spec] of [
      ['bare', {}],
      ['server', { agent: { driver: 'Server' } }],
    ] as [string, object][]) {
      const { code, stderr } = await create(name, spec);
      assert.equal(code, 2);
      assert.match(stderr, /there is no program to run: class "\w+" has none of its own/);
    }
  });

  test('turn --detach is turn --no-wait: it prints the name and does not wait', async () => {
    await server.store.create(sessions, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'Session',
      metadata: { namespace: NAMESPACE, name: 'many' },
      spec: { agent: { command: ['true'] } } as Session['spec'],
    });
    const { code, stdout, stderr } = await caller.berth(['turn', 'many', '--name', 'many-1', '--detach'], { env });
    assert.deepEqual([code, stdout, stderr], [0, 'many-1\n', '']);
  });

  test('the driver Tools without tools is refused before anything is created, with what to give', async () => {
    await createClass('toolless', {});
    const { code, stderr } = await caller.berth(['create', 'idle', '--class', 'toolless', '--driver', 'tools'], {
      env,
    });
    assert.equal(code, 2);
    assert.match(stderr, /class "toolless" has none; set spec\.agent\.tools in a manifest and give it with -f/);
    await assert.rejects(server.store.get(sessions, { namespace: NAMESPACE, name: 'idle' }), /not found/);
  });

  test('says on stderr why the pod of a turn that is Running does not come up', async () => {
    const { child, ended } = run('pulling');
    let told = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      told += chunk;
    });
    await given('pulling');
    await say('pulling', {
      conditions: [
        condition('Admitted', 'True', 'Admitted', 'It holds a place.'),
        condition('Ready', 'False', 'ImageUnavailable', 'Image "foo" cannot be had.'),
      ],
    });
    await end('pulling', { phase: 'Running' });
    await eventually(() => /waiting: ImageUnavailable: Image "foo"/.test(told), { what: 'the missing image is told' });
    await end('pulling');
    assert.equal((await ended).code, 0);
  });

  test('a turn that runs shows since when, in the table and by itself', async () => {
    const { ended } = run('runs');
    await given('runs');
    const runs = [condition('Running', 'True', 'Running', 'The turn was given to incarnation 1.')];
    await end('runs', { phase: 'Running', index: 1, conditions: runs });
    const [header = '', row = ''] = (await caller.berth(['list', 'turns', '--session', 'runs'], { env })).stdout.split(
      '\n',
    );
    const since = row.slice(header.indexOf('SINCE'), header.indexOf('AGE')).trim();
    assert.match(since, /^\d+d$|^\d+y/);
    assert.match((await caller.berth(['get', 'turn', 'runs'], { env })).stdout, /^ +took +\d+h/m);
    await end('runs');
    assert.equal((await ended).code, 0);
  });

  test('goes on when the API server’s watches break', async () => {
    const { child, ended } = run('cut');
    let told = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      told += chunk;
    });
    await eventually(() => /waiting:/.test(told), { what: 'the command waits' });
    server.faults.dropWatches();
    await end('cut');
    assert.deepEqual(await ended.then(({ code, stdout }) => [code, stdout]), [0, 'cut\n']);
  });

  test('a suspension is over when the session’s status says so, and names the turn that ends first', async () => {
    await server.store.create(sessions, {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'Session',
      metadata: { namespace: NAMESPACE, name: 'asks' },
      spec: { agent: { command: ['true'] } } as unknown as Session['spec'],
    });
    const pending = (status: 'True' | 'False') => ({
      currentTurn: 'asks-1',
      conditions: [condition('ApprovalPending', status, 'AwaitingApproval', 'Turn asks-1 asks.')],
    });
    const noWait = async () => (await caller.berth(['suspend', 'asks', '--no-wait'], { env })).stderr;
    await say('asks', pending('False'));
    assert.match(await noWait(), /turn asks-1 ends first/);
    await say('asks', pending('True'));
    assert.equal(await noWait(), '');

    const look = () => server.store.get(sessions, { namespace: NAMESPACE, name: 'asks' });
    const before = (await look()).spec.suspendRequest;
    const { ended } = caller.start(['suspend', 'asks'], { env });
    const id = await eventually(
      async () => {
        const { suspendRequest } = (await look()).spec;
        return suspendRequest === before ? undefined : suspendRequest;
      },
      { what: 'the suspension is asked for' },
    );
    await say('asks', { suspendHandled: { id, afterTurn: 1 } });
    // The turn asks for approval again before the command reads the session.
    await say('asks', { suspendHandled: { id, afterTurn: 1, done: true } });
    assert.deepEqual(await ended, { code: 0, stdout: 'session.berth.dev/asks suspended\n', stderr: '' });
  });

  test('ends with 1 when the turn is deleted', async () => {
    const { ended } = run('deleted');
    await given('deleted');
    await server.store.delete(sessions, { namespace: NAMESPACE, name: 'deleted' });
    const { code, stderr } = await ended;
    assert.equal(code, 1);
    assert.match(stderr, /turn deleted was deleted before it ended/);
  });

  test('ends at once on a second Ctrl-C, while the turn is still asked to end', async () => {
    const { child, ended } = run('stuck');
    await waits('stuck', child);
    const cancelled = async () => (await given('stuck')).spec.cancel;
    child.kill('SIGINT');
    await eventually(cancelled, { what: 'the cancellation is asked for' });
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    assert.equal(code, 130);
    assert.doesNotMatch(stderr, /has not ended yet/);
  });

  for (const [signal, exitCode] of [
    ['SIGHUP', 129],
    ['SIGTERM', 143],
  ] as const) {
    const left = async (name: string, { child, ended }: ReturnType<typeof run>) => {
      child.kill(signal);
      const { code, stdout, stderr } = await ended;
      assert.deepEqual([code, stdout], [exitCode, '']);
      assert.match(stderr, new RegExp(`turn ${name} goes on; to wait for it again: berth attach ${name}\n$`));
      assert.equal((await given(name)).spec.cancel, false);
    };

    test(`${signal} leaves the turn of run and of turn, and says how to attach`, async () => {
      const name = `left-${signal.toLowerCase()}`;
      const started = run(name);
      await waits(name, started.child);
      await left(name, started);
      const named = `${name}-next`;
      const made = await caller.berth(['create', `${name}-many`, '--result', 'json', '--', 'true'], { env });
      assert.equal(made.code, 0, made.stderr);
      const args = ['turn', `${name}-many`, '--input', '1', '--name', named];
      const turn = caller.start(args, { env });
      await given(named);
      // The command waits once it watches the turn: a signal before that has the same effect, but another text.
      await says(turn.child, /waiting: /);
      await left(named, turn);
      await end(named);
      const again = await caller.berth(['attach', named], { env });
      assert.deepEqual([again.code, again.stdout], [0, `${named}\n`]);
    });

    test(`${signal} ends run --rm as Ctrl-C does: nobody would delete the session later`, async () => {
      const name = `removed-${signal.toLowerCase()}`;
      const { child, ended } = run(name, '--rm');
      await waits(name, child);
      child.kill(signal);
      await eventually(async () => (await given(name)).spec.cancel, { what: 'the cancellation is asked for' });
      await end(name, { phase: 'Cancelled' });
      assert.equal((await ended).code, exitCode);
      await assert.rejects(server.store.get(sessions, { namespace: NAMESPACE, name }), /not found/);
    });
  }

  for (const [verb, still, late] of [
    ['suspend', 'is still suspended', 'has not been suspended'],
    ['restart', 'still restarts', 'has not restarted'],
  ] as const) {
    test(`${verb} says what keeps the pod, and at its timeout what still holds`, async () => {
      const name = `kept-${verb}`;
      const made = await caller.berth(['create', name, '--result', 'json', '--', 'true'], { env });
      assert.equal(made.code, 0, made.stderr);
      await say(name, { podName: 'p-1', currentTurn: `${name}-1` });
      const { child, ended } = caller.start([verb, name, '--timeout', '20s'], { env });
      await says(child, new RegExp(`waiting: turn ${name}-1 ends first\\n`));
      const full = condition('StatePersisted', 'False', 'StateNotStored', 'The store is full.');
      await server.store.patch(
        sessions,
        { namespace: NAMESPACE, name },
        { status: { currentTurn: null, conditions: [full] } } as never,
        { subresource: 'status' },
      );
      await says(child, /waiting: StateNotStored: The store is full\.\n/);
      child.kill('SIGINT');
      const interrupted = await ended;
      assert.equal(interrupted.code, 130);
      assert.match(interrupted.stderr, new RegExp(`session ${name} ${still} once it can\n`));
      const soon = await caller.berth([verb, name, '--timeout', '100ms'], { env });
      assert.equal(soon.code, 124);
      assert.match(
        soon.stderr,
        new RegExp(`waiting: StateNotStored.*\n.*${still} once it can\n.*${late} within 100ms`),
      );
    });
  }

  test('attach gives what turn would have given: output or error, and the exit code', async () => {
    const attach = (...args: string[]) => caller.berth(['attach', ...args], { env });
    const none = await attach('absent');
    assert.deepEqual([none.code, none.stdout], [2, '']);
    assert.match(none.stderr, /there is no session or turn "absent"/);
    const made = await caller.berth(['create', 'returned', '--result', 'json', '--', 'true'], { env });
    assert.equal(made.code, 0, made.stderr);
    const unused = await attach('returned');
    assert.equal(unused.code, 2);
    assert.match(unused.stderr, /session returned has no turn yet; to give it one: berth turn returned/);
    const ends = [
      ['returned-1', { phase: 'Succeeded', output: 'done' }, 0, /^done\n$/, /^$/],
      [
        'returned-2',
        { phase: 'Failed', error: { code: 'AgentFailed', message: 'no' } },
        1,
        /^$/,
        /Failed: AgentFailed: no/,
      ],
      ['returned-3', { phase: 'TimedOut', error: { code: 'TurnTimedOut', message: 'late' } }, 124, /^$/, /TimedOut/],
    ] as const;
    for (const [index, [name, status, code, output, said]] of ends.entries()) {
      await caller.berth(['turn', 'returned', '--no-wait', '--name', name], { env });
      const early = caller.start(['attach', 'returned'], { env });
      await says(early.child, /waiting: /);
      await end(name, { ...status, index: index + 1 });
      for (const { code: ended, stdout, stderr } of [await early.ended, await attach(name), await attach('returned')]) {
        assert.equal(ended, code, stderr);
        assert.match(stdout, output);
        assert.match(stderr.replace(/^waiting: .*\n/gm, ''), said);
      }
    }
    const whole = JSON.parse((await attach('returned-1', '-o', 'json')).stdout) as Turn;
    assert.equal(whole.status?.output, 'done');
  });

  test('attach without a name takes the only turn that has not ended, and refuses to guess', async () => {
    const namespace = 'alone';
    await server.store.create(namespaces, { metadata: { name: namespace } } as never);
    const berth = (...args: string[]) => caller.berth(['-n', namespace, ...args], { env });
    const none = await berth('attach');
    assert.equal(none.code, 2);
    assert.match(none.stderr, /no turn of namespace "alone" is running; name one that has ended/);
    await berth('create', 'one', '--result', 'json', '--', 'true');
    await berth('turn', 'one', '--no-wait', '--name', 'one-1');
    await berth('turn', 'one', '--no-wait', '--name', 'one-2');
    const two = await berth('attach');
    assert.equal(two.code, 2);
    assert.match(two.stderr, /2 turns have not ended, name one: one-1, one-2/);
    const status = { phase: 'Succeeded' as const, output: 'only' };
    const finish = (name: string) =>
      server.store.patch(turns, { namespace, name }, { status }, { subresource: 'status' });
    await finish('one-1');
    const attached = caller.start(['attach', '-n', namespace], { env });
    await says(attached.child, /waiting: /);
    await finish('one-2');
    assert.deepEqual(await attached.ended.then(({ code, stdout }) => [code, stdout]), [0, 'only\n']);
  });

  test('prints what came all the same when the turn succeeded before Ctrl-C reached it', async () => {
    const { child, ended } = run('late');
    await waits('late', child);
    child.kill('SIGINT');
    await eventually(async () => (await given('late')).spec.cancel, { what: 'the cancellation is asked for' });
    await end('late');
    assert.deepEqual(await ended.then(({ code, stdout }) => [code, stdout]), [0, 'late\n']);
  });
});

describe('without a cluster', () => {
  const caller = new Caller(ROOT);
  afterAll(() => caller.remove());

  test('run ends with 3 and says how to start one', async () => {
    const { code, stdout, stderr } = await caller.berth(['run', '--', 'true']);
    assert.deepEqual({ code, stdout }, { code: 3, stdout: '' });
    assert.match(stderr, /no cluster is configured.*berth local up --detach/s);
  });
  test('local kubeconfig ends with 3 and says how to start one', async () => {
    const { code, stdout, stderr } = await caller.berth(['local', 'kubeconfig']);
    assert.deepEqual({ code, stdout }, { code: 3, stdout: '' });
    assert.match(stderr, /no embedded cluster runs.*berth local up --detach/s);
  });
  test('local up says what is wrong with a folder or a port, without a stack', async () => {
    const file = join(caller.root, 'file');
    writeFileSync(file, '');
    const up = await caller.berth(['local', 'up', '--detach'], { env: { BERTH_HOME: file } });
    assert.equal(up.code, 1);
    assert.match(up.stderr, /cannot hold the embedded cluster: EEXIST.*set BERTH_HOME to another folder$/m);
    assert.doesNotMatch(up.stderr, /^ +at /m);
    for (const flag of ['--port', '--api-port']) {
      for (const port of ['http', '65536', '-1', '1.5', '']) {
        const { code, stderr } = await caller.berth(['local', 'up', flag, port]);
        assert.equal(code, 2);
        assert.match(stderr, /it must be a port, from 1 to 65535/);
      }
    }
  });
  test('that answers, a command ends with 3', async () => {
    const kubeconfig = join(caller.root, 'dead');
    const cluster = { name: 'x', cluster: { server: 'http://127.0.0.1:9' } };
    const context = { name: 'x', context: { cluster: 'x', user: 'x' } };
    const text = { 'current-context': 'x', clusters: [cluster], users: [{ name: 'x', user: {} }], contexts: [context] };
    writeFileSync(kubeconfig, JSON.stringify(text));
    const { code, stderr } = await caller.berth(['--kubeconfig', kubeconfig, 'run', '--', 'true']);
    assert.equal(code, 3);
    assert.match(stderr, /does not answer.*ECONNREFUSED/s);
  });
  test('errors of the input are reported all the same', async () => {
    assert.equal((await caller.berth(['run', '--input', '{', '--', 'true'])).code, 2);
  });
});

describe('help', () => {
  const caller = new Caller(ROOT);
  afterAll(() => caller.remove());
  const commands = [
    'run',
    'create',
    'turn',
    'list',
    'get',
    'logs',
    'map',
    'wait',
    'why',
    'suspend',
    'resume',
    'cancel',
    'approve',
    'delete',
    'update',
    'version',
    'completion',
    'help',
    'local',
    'local up',
    'local down',
    'local kubeconfig',
  ];

  for (const command of commands) {
    test(`of ${command} has an example`, async () => {
      const { code, stdout } = await caller.berth([...command.split(' '), '--help']);
      assert.equal(code, 0);
      assert.match(stdout, new RegExp(`Example:\\n.*berth ${command}`));
    });
  }
  test('is printed by the command help, too, which refuses commands that do not exist', async () => {
    for (const command of ['turn', 'local up', 'ls'])
      assert.equal(await caller.ok('help', ...command.split(' ')), await caller.ok(...command.split(' '), '--help'));
    assert.match(await caller.ok('help'), /^Look and wait:$/m);
    const unknown = await caller.berth(['help', 'local', 'turn']);
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /there is no command "local turn"; to see all commands: berth --help/);
  });
  test('of the kubectl plugin shows how it is called there', async () => {
    const { stdout } = await caller.berth(['run', '--help'], { env: { BERTH_INVOKED_AS: 'kubectl session' } });
    assert.match(stdout, /Usage: kubectl session run/);
  });
});
