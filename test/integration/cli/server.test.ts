import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { sessions, turns } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { pythonAgent } from '../../support/installation.ts';
import { OnTerminal } from '../../support/on-terminal.ts';
import { ApiCluster } from '../api/support.ts';
import { makePair } from '../api/tls-pair.ts';
import { Caller, type Ended } from './support.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..', '..');

/** What differs from call to call: names with a random suffix, versions, identities and times. */
const VARYING: [RegExp, string][] = [
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'UID'],
  [/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME'],
  [/\b\d\d:\d\d:\d\d\b/g, 'CLOCK'],
  [/\b(\d+m)?\d+(\.\d+)?(ms|s)\b|\b\d+m\b/g, 'AGE'],
  [/\b\d+\.\d+\.\d+\.\d+\b/g, 'PLACE'],
  [/ +/g, ' '],
  // A busy machine takes longer than the time after which the wait is explained.
  [/^waiting: .*\n/gm, ''],
];
const alike = (text: string) => VARYING.reduce((all, [what, word]) => all.replaceAll(what, word), text);

describe('the command line through the HTTP API', () => {
  /** Prints, leaves a file, and asks if its input says so. */
  const agent = pythonAgent(`
sys.path.insert(0, '${join(CHECKOUT, 'clients', 'python')}')
import berth_agent
said = request['input']
if said == 'sleep': time.sleep(600)
print('got', said, flush=True)
if said == 'fail': raise SystemExit('no')
if said == 'ask': said = berth_agent.approve('May I?', None)['decision']
with open(os.path.join(os.environ['BERTH_OUTPUT_DIR'], 'report.txt'), 'w') as file: file.write('x' * 100000)
answer('y' * 300000 if said == 'large' else {'said': said, 'n': 12345678901234567890})
`);
  let api: ApiCluster;
  let caller: Caller;
  /** Flags of the HTTP API. */
  let server: string[];
  let tokenFile: string;
  /** Calls through the kubeconfig alone, and through the server alone. */
  const direct = (...words: string[]): Promise<Ended> =>
    caller.berth(words, { env: { KUBECONFIG: api.cluster.kubeconfig } });
  const through = (...words: string[]): Promise<Ended> => caller.berth([...words, ...server]);
  const both = async (...words: string[]) => {
    const [one, other] = await Promise.all([direct(...words), through(...words)]);
    assert.equal(other.code, one.code, `${words.join(' ')}: ${one.stderr} / ${other.stderr}`);
    return [one, other] as const;
  };
  /** Both calls print the same, but for what varies. */
  const same = async (...words: string[]): Promise<Ended> => {
    const [one, other] = await both(...words);
    assert.equal(alike(other.stdout), alike(one.stdout), words.join(' '));
    assert.equal(alike(other.stderr), alike(one.stderr), words.join(' '));
    return other;
  };

  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    caller = new Caller(CHECKOUT, { KUBECONFIG: join('/nonexistent', 'kubeconfig') });
    const { token } = await api.user([{ verbs: ['*'], resources: ['sessions', 'turns', 'blobs', 'approvals'] }]);
    tokenFile = join(caller.root, 'token');
    writeFileSync(tokenFile, `${token}\n`);
    server = ['--server', api.url, '--token-file', tokenFile];
    await api.cluster.create('notes', { agent });
  });
  afterAll(async () => {
    caller.remove();
    await api.close();
  });

  test('a turn gives the same output, exit code and messages, also a large output and a failure', async () => {
    assert.equal((await same('turn', 'notes', 'hello')).stdout, '{"said":"hello","n":12345678901234567890}\n');
    assert.equal((await same('turn', 'notes', 'large')).stdout.length, 300_001);
    const [, failed] = await both('turn', 'notes', 'fail');
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /Failed: AgentFailed: exit code 1\n {2}no\nits log: berth logs notes --turn/);
    const late = await both('turn', 'notes', 'sleep', '--timeout', '1s');
    assert.equal(late[1].code, 124);
  });

  test('run creates a session with its turn, prints the output and deletes it with --rm', async () => {
    const words = ['--text', 'ü', '--input-as', 'text', '--result', 'text', '--', '/bin/cat'];
    const run = (...flags: string[]) => caller.berth([...server, 'run', ...flags, ...words]);
    const ran = await run('--name', 'made');
    assert.deepEqual([ran.code, ran.stdout, alike(ran.stderr)], [0, 'ü\n', 'session made\n']);
    const bare = await caller.berth([...server, 'run', '--result', 'text', '--', '/bin/echo', 'no input']);
    assert.deepEqual([bare.code, bare.stdout], [0, 'no input\n'], bare.stderr);
    assert.equal((await run('--rm', '--name', 'brief')).code, 0);
    assert.equal((await through('get', 'brief')).code, 2);
    const detached = await run('--detach', '--name', 'apart');
    assert.equal(detached.stdout, 'session.berth.dev/apart\nturn.berth.dev/apart\n');
    const again = await run('--name', 'made');
    assert.equal(again.code, 2);
    assert.match(again.stderr, /already exists/);
  });

  test('list, get, logs and artifacts show the same', async () => {
    assert.equal((await direct('turn', 'notes', 'hello')).code, 0);
    // Nothing changes between two commands: the sessions of the tests before have ended, and all turns are counted.
    assert.equal((await direct('wait', 'apart', '--for=finished', '--timeout', '2m')).code, 0);
    await eventually(
      async () => {
        const { status } = await api.cluster.session('notes');
        const scope = { namespace: 'default', fieldSelector: 'spec.session=notes' };
        const { items } = await api.cluster.client.list(turns, scope);
        const { items: all } = await api.cluster.client.list(sessions, { namespace: 'default' });
        // A session that has finished gives up its pod a moment later, which wide lists show.
        const areOver = all.every(
          ({ spec, status }) => spec.turns !== 'One' || (status?.phase === 'Finished' && !status.podName),
        );
        return areOver && status?.phase === 'Ready' && status.turns?.total === items.length;
      },
      { what: 'notes has counted its turns, and the other sessions are over' },
    );
    for (const words of [
      ['list'],
      ['list', '-o', 'wide'],
      ['list', '-o', 'name'],
      ['list', 'turns'],
      ['list', 'turns', '--session', 'notes', '-o', 'name'],
      ['list', '-l', 'none=here'],
      ['get', 'notes'],
      ['get', 'notes', '-o', 'name'],
      ['get', 'nobody'],
      ['get', 'turn', 'nothing'],
      ['logs', 'notes'],
      ['logs', 'nobody'],
      ['artifacts', 'list', 'notes'],
      ['wait', 'notes', '--for=ready'],
      ['wait', 'notes', '--for=turn=nothing'],
    ])
      await same(...words);
    const [turn = ''] = (await through('list', 'turns', '--session', 'notes', '-o', 'name')).stdout.split('\n');
    const name = turn.split('/')[1] ?? '';
    for (const words of [
      ['get', 'turn', name],
      ['logs', name],
      ['artifacts', 'list', name],
      ['wait', 'notes', `--for=turn=${name}`],
    ])
      await same(...words);
    const shown = JSON.parse((await through('get', 'notes', '-o', 'json')).stdout);
    assert.deepEqual([shown.kind, shown.metadata.name, shown.status.phase], ['Session', 'notes', 'Ready']);
  });

  test('artifacts download writes the files', async () => {
    assert.equal((await direct('turn', 'notes', 'hello')).code, 0);
    const folder = join(caller.root, 'out');
    const { code, stderr } = await through('artifacts', 'download', 'notes', '-D', folder);
    assert.equal(code, 0, stderr);
    assert.equal(readFileSync(join(folder, 'report.txt'), 'utf8'), 'x'.repeat(100_000));
  });

  test('create, suspend, resume, restart, cancel and delete do the same', async () => {
    for (const [name, call] of [
      ['one', direct],
      ['other', through],
    ] as const) {
      // The flags of the server stand before --, after which everything is the program's.
      const flags = call === through ? server : [];
      const env = call === through ? {} : { KUBECONFIG: api.cluster.kubeconfig };
      const made = await caller.berth(
        [...flags, 'create', name, '--label', `of=${name}`, '--result', 'text', '--', '/bin/cat'],
        { env },
      );
      assert.deepEqual([made.code, made.stdout], [0, `session.berth.dev/${name} created\n`], made.stderr);
      assert.equal((await call('turn', name, 'x')).code, 0);
      assert.equal((await call('suspend', name)).stdout, `session.berth.dev/${name} suspended\n`);
      assert.equal((await call('wait', name, '--for=suspended')).code, 0);
      assert.equal((await call('turn', name, 'y')).code, 0);
      assert.equal((await call('restart', name)).stdout, `session.berth.dev/${name} restarted\n`);
      assert.equal((await call('turn', name, 'again')).code, 0);
      const many = await call('restart', '-l', `of=${name}`, '-o', 'json');
      assert.deepEqual([many.code, JSON.parse(many.stdout).outcome], [0, 'Restarted'], many.stderr);
      assert.equal((await call('suspend', name, '--hold')).code, 0);
      assert.equal((await call('turn', name, 'z', '--no-wait', '--name', `${name}-z`)).stdout, `${name}-z\n`);
      assert.equal((await call('cancel', name)).stdout, `turn.berth.dev/${name}-z Cancelled\n`);
      assert.equal((await call('resume', name)).stdout, `session.berth.dev/${name} resumed\n`);
      assert.equal((await call('delete', name)).stdout, `session.berth.dev/${name} deleted\n`);
      assert.equal((await call('get', name)).code, 2);
    }
  });

  test('approve decides once, and as the holder of the token', async () => {
    const asking = caller.start(['turn', 'notes', 'ask', '--name', 'asks', ...server]);
    await eventually(async () => (await through('get', 'notes')).stdout.includes('AwaitingApproval'), {
      what: 'the question',
    });
    const { code, stdout, stderr } = await through('approve', 'notes', '--note', 'fine');
    assert.deepEqual([code, stdout], [0, 'turn.berth.dev/asks approved\n'], stderr);
    assert.match(stderr, /^turn asks asks: May I\?/);
    assert.match((await asking.ended).stdout, /Approve/);
    await same('approve', 'notes');
  });

  test('a turn on a terminal is followed, and Ctrl-C cancels it', async () => {
    const berth = join(CHECKOUT, 'bin', 'berth');
    const onTerminal = (words: string) =>
      new OnTerminal(`exec ${berth} ${words} ${server.join(' ')}`, caller.env, CHECKOUT);
    const shown = onTerminal('turn notes hello --name shown');
    assert.equal(await shown.ended, 0, shown.shown);
    assert.match(shown.shown, /got hello.*"said":"hello"/s);
    const stopped = onTerminal('turn notes sleep --name stopped');
    await stopped.says('turn stopped Running');
    stopped.types('\u0003');
    assert.equal(await stopped.ended, 130, stopped.shown);
    assert.equal((await api.cluster.ended('stopped')).status?.phase, 'Cancelled');
  });

  test('watch and logs -f follow, and a server that goes away is told and awaited', async () => {
    const { child, host, port } = await api.startProgram();
    const flags = ['--server', `http://${host}`, '--token-file', tokenFile];
    const watch = caller.start(['watch', 'notes', '--logs', ...flags]);
    const said = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      watch.child[name]?.setEncoding('utf8').on('data', (chunk: string) => {
        said[name] += chunk;
      });
    }
    await eventually(() => said.stdout.includes('session notes'), { what: 'the watch has begun' });
    const logs = caller.start(['logs', '-f', 'notes', ...flags]);
    let text = '';
    logs.child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    assert.equal((await through('turn', 'notes', 'first', '--name', 'first')).code, 0);
    await eventually(() => said.stdout.includes('turn first Succeeded') && text.includes('got first'), {
      what: 'the turn',
    });
    child.kill('SIGKILL');
    await eventually(() => said.stderr.includes('the server does not answer, trying again'), { what: 'the loss' });
    assert.equal((await logs.ended).code, 3);
    assert.equal((await through('turn', 'notes', 'second', '--name', 'second')).code, 0);
    const next = await api.startProgram({ BERTH_API_PORT: String(port) });
    await eventually(() => said.stderr.includes('the server answers again'), { what: 'the return' });
    // What has happened meanwhile is told: the stream goes on after its last event.
    await eventually(() => said.stdout.includes('turn second Succeeded'), { what: 'the turn in between' });
    assert.equal(said.stdout.split('turn first Succeeded').length, 2, said.stdout);
    watch.child.kill('SIGINT');
    assert.equal((await watch.ended).code, 130);
    next.child.kill('SIGKILL');
    await next.closed;
  });

  test('refusals of the server say what and why, with the same exit code', async () => {
    const nobody = await api.user([]);
    writeFileSync(join(caller.root, 'nobody'), nobody.token);
    writeFileSync(join(caller.root, 'wrong'), 'nonsense');
    const by = (file: string, ...words: string[]) =>
      caller.berth([...words, '--server', api.url, '--token-file', join(caller.root, file)]);
    const forbidden = await by('nobody', 'list');
    assert.equal(forbidden.code, 2);
    assert.match(forbidden.stderr, /may not|cannot list/);
    const unknown = await by('wrong', 'list');
    assert.equal(unknown.code, 3);
    assert.match(unknown.stderr, /the server does not accept the token/);
    assert.doesNotMatch(unknown.stderr, /nonsense/);
    const kubernetes = await caller.berth(['list', '--server', api.cluster.server.url, '--token-file', tokenFile]);
    assert.equal(kubernetes.code, 3);
    await both('turn', 'notes', 'x', '--attempts', '2', '--timeout', '100h');
    const [, late] = await both('run', '--class', 'none', '--text', 'x');
    assert.match(late.stderr, /none/);
  });

  test('commands that need more than the HTTP API refuse it and say what to use', async () => {
    for (const words of [
      ['map', '/dev/null'],
      ['env', 'list'],
      ['env', 'get', 'x'],
      ['why', 'notes'],
      ['secret', 'model'],
      ['restart', '--uses-secret', 'model'],
      ['restart', '--outdated', '-A'],
      ['update', 'notes', '--env', 'a=b'],
      ['list', '-A'],
      ['list', '--watch'],
      ['local', 'kubeconfig'],
      ['completion', 'bash'],
    ]) {
      const { code, stdout, stderr } = await through(...words);
      assert.deepEqual([code, stdout], [2, ''], words.join(' '));
      assert.match(stderr, /--kubeconfig FILE|leave --server out/, words.join(' '));
    }
    for (const flags of [
      ['--with', 'examples/agent.py'],
      ['--attempts', '2'],
      ['--dry-run', 'server'],
    ]) {
      const { code, stderr } = await caller.berth([
        ...server,
        'run',
        '--name',
        'not',
        '--text',
        'x',
        ...flags,
        '--',
        'cat',
      ]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, new RegExp(`${flags[0]}.* is not possible through the HTTP API`));
    }
    assert.equal((await through('get', 'not')).code, 2);
  });

  test('a server with TLS is checked with --certificate-authority', async () => {
    const files = (['cert', 'key'] as const).map((part) => join(caller.root, part));
    const [cert = '', key = ''] = files;
    const pair = makePair('own');
    writeFileSync(cert, pair.cert);
    writeFileSync(key, pair.key);
    const program = await api.startProgram({ BERTH_API_TLS_CERT_FILE: cert, BERTH_API_TLS_KEY_FILE: key });
    const words = ['list', '--server', `https://${program.host}`, '--token-file', tokenFile];
    const unknown = await caller.berth(words);
    assert.equal(unknown.code, 3);
    assert.match(unknown.stderr, /certificate/);
    const known = await caller.berth([...words, '--certificate-authority', cert]);
    assert.equal(known.code, 0, known.stderr);
    assert.match(known.stdout, /notes/);
    const plain = await caller.berth(['list', '--server', `http://${program.host}`, '--token-file', tokenFile]);
    assert.equal(plain.code, 3);
    program.child.kill();
    await program.closed;
  });

  test('BERTH_SERVER stands for --server, and leaves other commands alone', async () => {
    const env = { BERTH_SERVER: api.url, BERTH_TOKEN_FILE: tokenFile };
    assert.match((await caller.berth(['list'], { env })).stdout, /notes/);
    for (const words of [['version'], ['version', '--client'], ['completion', 'bash'], ['local', '--help']])
      assert.equal((await caller.berth(words, { env })).code, 0, words.join(' '));
    const direct = await caller.berth(['list', '--kubeconfig', api.cluster.kubeconfig], {
      env: { ...env, BERTH_SERVER: 'x:' },
    });
    assert.equal(direct.code, 0, direct.stderr);
    const why = await caller.berth(['why', 'notes'], { env });
    assert.match(why.stderr, /BERTH_SERVER/);
  });
});
