import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, test } from 'vitest';
import {
  Berth,
  type BerthOptions,
  problems,
  type SessionStreamEvent,
  TurnCancelled,
  TurnFailed,
  TurnTimedOut,
} from '../../../clients/typescript/src/index.ts';
import { freePort } from '../../../local/ports.ts';
import { pythonAgent } from '../../support/installation.ts';
import { CHECKOUT, shownFiles } from '../../support/pages.ts';
import { ApiCluster, EVERYTHING } from '../api/support.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-typescript-'));
const PYTHON = join(import.meta.dirname, '../../../clients/python');

/** Does what its input says: prints lines, sends events, asks, leaves files, waits for a file, fails; each run adds a line to the file `ran`. */
const agent = {
  ...pythonAgent(`
sys.path.insert(0, '${PYTHON}')
import berth_agent
input = request['input']
open('${folder}/ran', 'a').write(request['turn']['name'] + chr(10))
for n in range(input.get('lines', 0)):
    print('line', n, flush=True)
    berth_agent.event({'n': n, 'big': 9007199254740993})
while input.get('until') and not os.path.exists(input['until']):
    time.sleep(0.02)
if input.get('ask'):
    print('told', berth_agent.approve(input['ask'], {'why': 'tests'})['decision'], flush=True)
for name, size in input.get('files', {}).items():
    path = os.path.join(os.environ['BERTH_OUTPUT_DIR'], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, 'wb').write(bytes(i * i % 251 for i in range(size)))
if input.get('fail'):
    berth_agent.error(input['fail'])
else:
    print(os.environ['BERTH_RESULT_START_MARKER'] + '{"status": "success", "output": ' + input.get('output', 'null') + '}' + os.environ['BERTH_RESULT_END_MARKER'])
`),
};

const run = promisify(execFile);
const LIMIT_MS = 120_000;

describe('the TypeScript client', () => {
  let api: ApiCluster;
  let token: string;
  let berth: Berth;
  const client = (options: BerthOptions = {}) => new Berth({ server: api.url, token, ...options });

  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    ({ token } = await api.user([...EVERYTHING, { verbs: ['*'], resources: ['approvals'] }]));
    berth = client();
  });
  afterAll(async () => {
    await api.close();
    rmSync(folder, { recursive: true });
  });
  const ran = (turn: string) =>
    readFileSync(join(folder, 'ran'), 'utf8')
      .split('\n')
      .filter((name) => name === turn).length;

  test('runs an input and has every digit of its output', async () => {
    const output = '{"big":12345678901234567890,"tiny":1e-400,"text":"😀","list":[9007199254740993,null,""]}';
    const run = await berth.run({ agent, input: { output } });
    assert.deepEqual(run.output, {
      big: 12345678901234567890n,
      tiny: '1e-400',
      text: '😀',
      list: [9007199254740993n, null, ''],
    });
    assert.equal(run.text(), output);
    assert.equal((await run.session.get()).status?.phase, 'Finished');
  });

  test('has null, an empty text and an output beyond what a Turn holds', async () => {
    const session = await berth.sessions.create({ agent });
    const long = JSON.stringify('é'.repeat(40_000));
    for (const output of ['null', '""', long]) {
      const turn = await session.turns.create({ input: { output } });
      const result = await turn.result();
      assert.deepEqual([result.output, result.text()], [JSON.parse(output), output]);
    }
  });

  test('runs once what is asked for twice with one key, and refuses the key for anything else', async () => {
    const run = (input: unknown) => berth.run({ agent, input }, { idempotencyKey: 'once' });
    const [first, second] = await Promise.all([run({ output: '1' }), run({ output: '1' })]);
    assert.equal(first.session.name, second.session.name);
    assert.equal(ran(first.turn.name), 1);
    await assert.rejects(run({ output: '2' }), problems.IdempotencyKeyReused);
  });

  test('has a class for each end of a turn, and cancels', async () => {
    const session = await berth.sessions.create({ agent });
    const fails = await session.turns.create({ input: { fail: 'no luck' } });
    await assert.rejects(fails.result(), (error) => error instanceof TurnFailed && /no luck/.test(error.message));
    const never = join(folder, 'never');
    const slow = await session.turns.create({ input: { until: never }, timeout: '1s' });
    await assert.rejects(slow.result(), TurnTimedOut);
    const cancelled = await session.turns.create({ input: { until: never } });
    const result = cancelled.result();
    await cancelled.cancel();
    await assert.rejects(result, TurnCancelled);
    assert.equal(await fails.log(), '');
  });

  test('follows a session with its lines over a restart of the API, each line and event once', async () => {
    const env = { BERTH_API_PORT: String(await freePort()) };
    const first = await api.startProgram(env);
    const own = client({ server: `http://${first.host}`, timing: { baseMs: 20, maxMs: 200 } });
    const session = await own.sessions.create({ agent });
    const go = join(folder, 'go');
    const turn = await session.turns.create({ input: { lines: 20, until: go, output: '7' } });
    const seen: SessionStreamEvent[] = [];
    let second: Awaited<ReturnType<typeof api.startProgram>> | undefined;
    for await (const event of session.events({ logs: true })) {
      seen.push(event);
      const lines = seen.filter(({ type }) => type === 'log').length;
      if (lines === 10 && event.type === 'log') {
        first.child.kill('SIGKILL');
        await first.closed;
        second = await api.startProgram(env);
      }
      const events = seen.filter(({ type }) => type === 'agent').length;
      if (lines === 20 && events === 20) break;
    }
    assert.ok(second);
    writeFileSync(go, '');
    assert.equal((await turn.result()).output, 7);
    second.child.kill('SIGKILL');
    await second.closed;
    const texts = seen.flatMap((event) => (event.type === 'log' ? [event.data.text] : []));
    assert.deepEqual(
      texts,
      Array.from({ length: 20 }, (_, n) => `line ${n}`),
    );
    const agentEvents = seen.flatMap((event) => (event.type === 'agent' ? [event.data.event] : []));
    assert.deepEqual(
      agentEvents,
      Array.from({ length: 20 }, (_, n) => ({ n, big: 9007199254740993n })),
    );
    assert.equal(ran(turn.name), 1);
  });

  test('decides on a question that an event tells of, and is told of a second decision', async () => {
    const session = await berth.sessions.create({ agent });
    const turn = await session.turns.create({ input: { ask: 'Deploy?', output: '1' } });
    let decided = 0;
    for await (const event of turn.events()) {
      if (event.type !== 'approval' || event.data.decided || decided > 0) continue;
      assert.deepEqual([event.data.prompt, event.data.payload], ['Deploy?', { why: 'tests' }]);
      const [pending] = await session.approvals();
      assert.deepEqual([pending?.requestId, pending?.payload], [event.data.requestId, { why: 'tests' }]);
      await session.approval(event.data).approve({ note: 'tested' });
      await assert.rejects(turn.approval(event.data.requestId).deny(), problems.AlreadyDecided);
      decided++;
    }
    assert.equal(decided, 1);
    assert.equal((await turn.result()).output, 1);
    assert.match(await turn.log(), /^told Approve$/m);
  });

  test('decides while it waits for a result', async () => {
    const run = await berth.run(
      { agent, input: { ask: 'Deploy?', output: '"done"' } },
      { onApproval: async (approval) => void (await approval.deny({ note: 'not today' })) },
    );
    assert.equal(run.output, 'done');
    assert.match(await run.turn.log(), /^told Deny$/m);
  });

  test('saves the files that a turn has left', async () => {
    const run = await berth.run({ agent, input: { files: { 'a/b c.bin': 300_000, empty: 0 } } });
    const artifacts = await run.turn.artifacts();
    assert.deepEqual(
      artifacts.map(({ name, bytes }) => [name, bytes]),
      [
        ['a/b c.bin', 300_000],
        ['empty', 0],
      ],
    );
    for (const [at, artifact] of artifacts.entries()) {
      await artifact.save(join(folder, `saved-${at}`));
      assert.equal(readFileSync(join(folder, `saved-${at}`)).length, artifact.bytes);
    }
    const expected = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * i) % 251));
    assert.ok(Buffer.from(await run.turn.artifact('a/b c.bin').read()).equals(expected));
  });

  test('suspends, resumes and restarts a session, and deletes the one that it has read alone', async () => {
    const session = await berth.sessions.create({ agent }, { labels: { suite: 'typescript' } });
    await session.suspend({ hold: true });
    assert.equal(session.object?.spec.suspend, true);
    await session.resume();
    assert.equal(session.object?.spec.suspend, false);
    await session.touch();
    await session.restart();
    const names: string[] = [];
    for await (const { name } of berth.sessions.list({ labelSelector: 'suite=typescript' })) names.push(name);
    assert.deepEqual(names, [session.name]);
    const other = berth.session(session.name);
    await other.delete();
    await assert.rejects(other.get(), problems.NotFound);
    await berth.sessions.create({ agent }, { name: session.name });
    await assert.rejects(session.delete(), problems.UIDMismatch);
    assert.equal((await berth.sessions.get(session.name)).name, session.name);
  });

  test('is installed from its file into an empty folder, where the programs of its pages compile and run', async () => {
    const builds = [join(CHECKOUT, 'package/typescript-client.ts')];
    const { stdout } = await run(process.execPath, builds, { timeout: LIMIT_MS });
    const [tarball = ''] = stdout.split('  ');
    const cwd = mkdtempSync(join(folder, 'installed-'));
    writeFileSync(join(cwd, 'package.json'), '{"type": "module"}');
    const npm = ['install', '--offline', '--no-audit', '--no-fund', `--cache=${join(cwd, 'npm')}`, tarball];
    await run('npm', npm, { cwd, timeout: LIMIT_MS });
    const shown = [...shownFiles('docs/applications.md'), ...shownFiles('clients/typescript/README.md')];
    const programs = shown.filter(([, text]) => text.includes("from 'berth-client'"));
    assert.ok(programs.length >= 6);
    for (const [name, text] of programs) writeFileSync(join(cwd, name), text);
    const compiler = join(CHECKOUT, 'node_modules/typescript/bin/tsc');
    const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'];
    const target = ['--noEmit', '--types', '', '--target', 'es2022', '--module', 'nodenext'];
    const names = programs.map(([name]) => name);
    const compiled = run(process.execPath, [compiler, ...strict, ...target, ...names], { cwd, timeout: LIMIT_MS });
    await compiled.catch(({ stdout }) => assert.fail(stdout));
    writeFileSync(join(cwd, 'token'), token);
    const env = { PATH: process.env.PATH, BERTH_SERVER: api.url, BERTH_TOKEN_FILE: join(cwd, 'token') };
    const printed = async (name: string) =>
      (await run(process.execPath, [name], { cwd, env, timeout: LIMIT_MS })).stdout;
    assert.equal(await printed('first.ts'), 'HELLO\n');
    assert.match(await printed('follow.ts'), /\nSucceeded\nHELLO\n$/);
    assert.equal(await printed('files.ts'), '');
    assert.equal(readFileSync(join(cwd, 'asked.txt'), 'utf8'), 'hello');
    assert.equal(await printed('errors.ts'), '"PAID"\n');
    assert.equal(await printed('double.ts'), 'NotFound\n');
  });
});
