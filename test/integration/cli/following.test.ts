import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { turns } from '../../../core/resources/kinds.ts';
import type { RequestFacts } from '../../../local/apiserver/types.ts';
import { eventually } from '../../support/eventually.ts';
import { Installation, pythonAgent } from '../../support/installation.ts';
import { OnTerminal } from '../../support/on-terminal.ts';
import { Caller } from './support.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..', '..');

describe('a turn on a terminal', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'berth-following-'));
  /** Prints lines around an event, asks if its input says so, and ends when told to. */
  const agent = pythonAgent(`
sys.path.insert(0, '${join(CHECKOUT, 'clients', 'python')}')
import berth_agent
turn = request['turn']['name']
print('begin', turn, flush=True)
berth_agent.event({'tool': 'search', 'query': turn})
while turn == 'shown-2' and not os.path.exists('${scratch}/' + turn): time.sleep(0.02)
said = berth_agent.approve('May I \\x1b[2J go on?', {'files': 3}) if request['input'] == 'ask' else None
time.sleep(1.5 if request['input'] == 'slow' else 0)
while request['input'] == 'wait' and not os.path.exists('${scratch}/' + turn): time.sleep(0.02)
print('end', turn, flush=True)
answer(said['decision'] if said else 'done')
`);
  let cluster: Installation;
  let caller: Caller;
  beforeAll(async () => {
    cluster = await Installation.start();
    cluster.startController();
    caller = new Caller(CHECKOUT, { KUBECONFIG: cluster.kubeconfig });
    await cluster.create('shown', { agent });
  });
  afterAll(async () => {
    caller.remove();
    await cluster.stop();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
  });
  const BERTH = join(CHECKOUT, 'bin', 'berth');
  const onTerminal = (words: string, env: NodeJS.ProcessEnv = {}) =>
    new OnTerminal(`exec ${BERTH} ${words}`, { ...caller.env, ...env }, CHECKOUT);

  test('shows lines and events while the agent works, each once, and the output at the end', async () => {
    const terminal = onTerminal('turn shown --text wait --name shown-1');
    await terminal.says('begin shown-1');
    await terminal.says('shown-1: tool: search, query: shown-1');
    assert.doesNotMatch(terminal.shown, /end shown-1|done/);
    writeFileSync(join(scratch, 'shown-1'), '');
    assert.equal(await terminal.ended, 0, terminal.shown);
    for (const line of ['begin shown-1', 'end shown-1', 'query: shown-1', 'done'])
      assert.equal(terminal.shown.split(line).length, 2, `${line}: ${JSON.stringify(terminal.shown)}`);
    assert.ok(terminal.shown.indexOf('end shown-1') < terminal.shown.indexOf('done'));
  });

  test('shows how long a silent turn has been running, in a line that is gone before another is written', async () => {
    const terminal = onTerminal(`turn shown --text wait --name shown-6 >${scratch}/output`);
    const erase = '\r\u001b[K';
    await terminal.says(/(\r.\[Kturn shown-6 Running \d+s){2}/);
    writeFileSync(join(scratch, 'shown-6'), '');
    assert.equal(await terminal.ended, 0, terminal.shown);
    const left = terminal.shown.split('\r\n').map((line) => line.split(erase).at(-1) ?? '');
    // An event and a line of the log come by ways of their own.
    const begin = ['begin shown-6', 'shown-6: tool: search, query: shown-6'];
    assert.deepEqual([left[0], left[3]], ['turn shown-6 Running', 'end shown-6'], terminal.shown);
    assert.deepEqual(left.slice(1, 3).toSorted(), begin, terminal.shown);
    assert.match(left[4] ?? '', /^turn shown-6 Succeeded after [0-9.]+s$/);
    assert.deepEqual(left.slice(5), ['']);
    assert.equal(readFileSync(join(scratch, 'output'), 'utf8'), 'done\n');
  });

  test('shows no running time with --quiet, nor on a terminal that cannot erase it', async () => {
    for (const [flags, env] of [
      [' --quiet', {}],
      ['', { TERM: 'dumb' }],
    ] as const) {
      const terminal = onTerminal(`turn shown --text slow${flags}`, env);
      assert.equal(await terminal.ended, 0, terminal.shown);
      assert.match(terminal.shown, /done\r\n/);
      assert.doesNotMatch(terminal.shown, /Running \d/);
      assert.ok(!terminal.shown.includes('\u001b'), JSON.stringify(terminal.shown));
    }
  });

  test('asks for a decision in place: keys typed before are no answer, and No is the default', async () => {
    const terminal = onTerminal('turn shown --text ask --name shown-2');
    await terminal.says('turn shown-2 Running');
    terminal.types('y');
    writeFileSync(join(scratch, 'shown-2'), '');
    await terminal.says('May I \\x1b[2J go on?');
    await terminal.says('{"files":3}');
    await terminal.says('Approve it? [y/N]');
    const asked = await cluster.client.get(turns, { namespace: 'default', name: 'shown-2' });
    assert.equal(asked.status?.approval?.decided, undefined);
    // Keys count once the question has been there for a moment.
    await eventually(
      async () => {
        terminal.types('\r');
        const turn = await cluster.client.get(turns, { namespace: 'default', name: 'shown-2' });
        return turn.status?.approval?.decided?.decision === 'Deny';
      },
      { what: 'the denial' },
    );
    assert.equal(await terminal.ended, 0, terminal.shown);
    assert.match(terminal.shown, /turn shown-2 denied/);
  });

  test('a question that somebody else decides is taken back', async () => {
    const terminal = onTerminal('turn shown --text ask --name shown-3');
    await terminal.says('Approve it? [y/N]');
    await caller.ok('approve', 'shown-3', '--note', 'fine');
    assert.equal(await terminal.ended, 0, terminal.shown);
    assert.match(terminal.shown, /turn shown-3 approved.*: fine/);
    assert.match(terminal.shown, /\r?\nApprove\r?\nturn shown-3 Succeeded after .*\r?\n$/);
  });

  test('who may not decide is told the command', async () => {
    const { client } = cluster;
    const rbac = (plural: string, kind: string) =>
      ({ group: 'rbac.authorization.k8s.io', version: 'v1', plural, kind, namespaced: true }) as const;
    const metadata = { name: 'runner', namespace: 'default' };
    const verbs = ['get', 'list', 'watch', 'create'];
    const rules = [
      { apiGroups: ['berth.dev'], resources: ['sessions', 'turns'], verbs },
      { apiGroups: [''], resources: ['pods', 'pods/log'], verbs },
    ];
    await client.create(rbac('roles', 'Role'), { metadata, rules } as never);
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'runner' };
    const subjects = [{ kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' }];
    await client.create(rbac('rolebindings', 'RoleBinding'), { metadata, roleRef, subjects } as never);
    const env = { KUBECONFIG: cluster.kubeconfigOf('jane', []) };
    const terminal = onTerminal('turn shown --text ask --name shown-4', env);
    await terminal.says('to decide: berth approve shown-4');
    assert.doesNotMatch(terminal.shown, /Approve it\?/);
    await caller.ok('approve', 'shown-4');
    assert.equal(await terminal.ended, 0, terminal.shown);
  });

  test('--quiet and pipes say no more than before', async () => {
    const quiet = onTerminal('turn shown --text x --quiet');
    assert.equal(await quiet.ended, 0);
    assert.equal(quiet.shown, 'done\r\n');
    const { stdout, stderr } = await caller.berth(['turn', 'shown', '--text', 'x']);
    assert.deepEqual([stdout, stderr], ['done\n', '']);
  });

  test('Ctrl-C during a question cancels the turn and leaves the terminal as it was', async () => {
    const terminal = onTerminal('turn shown --text ask --name shown-5');
    await terminal.says('Approve it? [y/N]');
    terminal.types('\u0003');
    assert.equal(await terminal.ended, 130, terminal.shown);
    const turn = await cluster.ended('shown-5');
    assert.equal(turn.status?.phase, 'Cancelled');
  });

  test('logs of a turn that is held say that it has not run, although its status tells since when it waits', async () => {
    await cluster.create('held', { agent: { command: ['true'] }, suspend: true });
    await cluster.turn('held', 'held-1', null);
    await eventually(
      async () => (await cluster.client.get(turns, { namespace: 'default', name: 'held-1' })).status?.reason === 'Held',
      { what: 'the turn is held' },
    );
    const { code, stdout, stderr } = await caller.berth(['logs', 'held', '--turn', 'held-1']);
    assert.deepEqual([code, stdout, stderr], [0, '', 'turn held-1 has not run yet\n']);
  });

  test('logs of a queued turn have nothing of the turn before it, and with -f wait until it runs', async () => {
    await cluster.create('queue', { agent });
    for (const name of ['queue-1', 'queue-2'])
      await caller.ok('turn', 'queue', '--text', 'wait', '--name', name, '--no-wait');
    await eventually(async () => (await caller.ok('logs', 'queue-1')).includes('begin queue-1'), {
      what: 'queue-1 prints',
    });
    const { ended } = caller.start(['logs', 'queue', '--turn', 'queue-2', '-f']);
    const { code, stdout, stderr } = await caller.berth(['logs', 'queue', '--turn', 'queue-2']);
    assert.deepEqual([code, stdout, stderr], [0, '', 'turn queue-2 has not run yet\n']);
    for (const name of ['queue-1', 'queue-2']) writeFileSync(join(scratch, name), '');
    const followed = await ended;
    assert.equal(followed.code, 0, followed.stderr);
    // A kubelet that is slow gives the last line of a turn the time at which the next one runs already. An event and a line of the
    // log come by ways of their own.
    const event = /\[berth event\] .*"turn":"queue-2".*\n/;
    assert.match(followed.stdout, event);
    assert.match(followed.stdout.replace(event, ''), /^(end queue-1\n)?begin queue-2\nend queue-2\n$/);
    assert.doesNotMatch(followed.stdout, /begin queue-1/);
    assert.equal(followed.stderr, 'turn queue-2 Succeeded\n');
  });

  test('berth watch prints what happens in words or as JSON, and ends with the session', async () => {
    await cluster.create('watched', { agent });
    const words = caller.start(['watch', 'watched', '--logs']);
    const json = caller.start(['watch', '-o', 'json']);
    let said = '';
    let printed = '';
    json.child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      printed += chunk;
    });
    words.child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk;
    });
    await eventually(() => printed !== '' && said.includes('session watched'), { what: 'both watches have begun' });
    await caller.ok('turn', 'watched', '--text', 'x', '--name', 'watched-1');
    await eventually(() => /"turn":"watched-1".*"phase":"Succeeded"/.test(printed), { what: 'the end of the turn' });
    // A deletion ends the log, also where lines of it were not read yet.
    const told = ['turn watched-1 Succeeded', 'begin watched-1', 'query: watched-1'];
    await eventually(() => told.every((line) => said.includes(line)), { what: 'the turn is told in words' });
    await cluster.delete('watched');
    const { code, stdout } = await words.ended;
    assert.equal(code, 0);
    for (const line of [...told, 'session watched deleted'])
      assert.match(stdout, new RegExp(`^\\d\\d:\\d\\d:\\d\\d .*${line}`, 'm'));
    json.child.kill('SIGINT');
    assert.equal((await json.ended).code, 130);
    const missing = await caller.berth(['watch', 'nobody']);
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /nobody/);
    assert.ok(existsSync(scratch));
  });

  test('a cluster that goes away is told, and the watch goes on when it answers again', async () => {
    await cluster.create('kept', { agent });
    const watch = caller.start(['watch', 'kept']);
    const said = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      watch.child[name]?.setEncoding('utf8').on('data', (chunk: string) => {
        said[name] += chunk;
      });
    }
    await eventually(() => said.stdout.includes('session kept'), { what: 'the watch has begun' });
    let isAway = true;
    const { faults } = cluster.server;
    const concerns = ({ verb, resource }: RequestFacts) =>
      isAway && (verb === 'list' || verb === 'watch') && (resource === 'sessions' || resource === 'turns');
    faults.failNext(concerns, { code: 503, reason: 'ServiceUnavailable', message: 'away' }, 10_000);
    faults.dropWatches();
    await eventually(() => said.stderr.includes('the cluster does not answer, trying again'), { what: 'the loss' });
    isAway = false;
    await eventually(() => said.stderr.includes('the cluster answers again'), { what: 'the return' });
    await caller.ok('turn', 'kept', '--text', 'x', '--name', 'kept-1');
    await eventually(() => said.stdout.includes('turn kept-1 Succeeded'), { what: 'the turn after it' });
    await cluster.delete('kept');
    assert.equal((await watch.ended).code, 0);
  });
});
