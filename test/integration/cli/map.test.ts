import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { StoredSession } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { Caller } from './support.ts';

const caller = new Caller(join(import.meta.dirname, '..', '..', '..', 'examples'));
const path = (name: string) => join(caller.root, name);
const file = (name: string, ...inputs: unknown[]) => {
  writeFileSync(path(name), inputs.map((input) => `${JSON.stringify(input)}\n`).join(''));
  return path(name);
};

beforeAll(async () => {
  await caller.ok('local', 'up', '--detach');
});
afterAll(async () => {
  await caller.berth(['local', 'down']);
  caller.remove();
});

/** Prints its input; fails for "bad"; waits for the file that "wait:FILE" names. Each run adds a line to the log. */
const SCRIPT = `read -r input; echo "$input" >>"$LOG"
case $input in
  bad) exit 3 ;;
  wait:*) until [ -e "\${input#wait:}" ]; do sleep 0.05; done ;;
esac
printf 'got %s' "$input"`;
const program = (log: string) => [
  ...['--input-as', 'text', '--result', 'text', '--env', `LOG=${path(log)}`, '--', 'sh', '-c', SCRIPT],
];
const runs = (log: string) => (existsSync(path(log)) ? readFileSync(path(log), 'utf8').trim().split('\n').sort() : []);
interface Result {
  line: number;
  session: string;
  phase: string;
  output?: unknown;
  error?: { code: string };
}
const results = (stdout: string): Result[] =>
  stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
const sessionsOf = async (map: string): Promise<StoredSession[]> =>
  JSON.parse(await caller.ok('list', '-l', `berth.dev/map=${map}`, '-o', 'json')).items;

describe('berth map', () => {
  test('prints a result for each line in their order, says so on stderr, and ends with 1 where some failed', async () => {
    const items = file('some.jsonl', 'a', 'bad', 'b', 'a');
    const { code, stdout, stderr } = await caller.berth(['map', items, '--max', '2', ...program('some.log')]);
    assert.equal(code, 1, stderr);
    const found = results(stdout);
    assert.deepEqual(
      found.map(({ line, phase, output }) => [line, phase, output]),
      [
        [1, 'Succeeded', 'got a'],
        [2, 'Failed', ''],
        [3, 'Succeeded', 'got b'],
        [4, 'Succeeded', 'got a'],
      ],
    );
    assert.equal(found[1]?.error?.code, 'AgentFailed');
    assert.match(stderr, /^map-\w{8}: 4 of 4 done, 1 failed, /m);
    assert.match(stderr, /--retry-failed/);
    assert.deepEqual(runs('some.log'), ['a', 'a', 'b', 'bad']);
  });

  test('runs nothing twice in a second call, which may have more lines; failed ones only with --retry-failed', async () => {
    const items = file('some.jsonl', 'new', 'a', 'bad', 'b', 'a');
    const again = await caller.berth(['map', items, ...program('some.log')]);
    assert.equal(again.code, 1);
    assert.deepEqual(
      results(again.stdout).map(({ output }) => output),
      ['got new', 'got a', '', 'got b', 'got a'],
    );
    assert.deepEqual(runs('some.log'), ['a', 'a', 'b', 'bad', 'new']);
    await caller.berth(['map', items, '--retry-failed', ...program('some.log')]);
    assert.deepEqual(runs('some.log'), ['a', 'a', 'b', 'bad', 'bad', 'new']);
  });

  test('prints results as they come with --unordered', async () => {
    const items = file('slow.jsonl', `wait:${path('released')}`, 'quick');
    const { child, ended } = caller.start(['map', items, '--unordered', ...program('slow.log')]);
    let printed = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      printed += chunk;
    });
    await eventually(() => printed.includes('got quick'), { what: 'the quick one is printed' });
    writeFileSync(path('released'), '');
    assert.equal((await ended).code, 0);
    assert.deepEqual(
      results(printed).map(({ line }) => line),
      [2, 1],
    );
  });

  test('leaves a state after Ctrl-C from which the same command goes on', async () => {
    const go = path('go');
    const items = file('stopped.jsonl', 'one', `wait:${go}`, 'two', 'three');
    const args = ['map', items, '--name', 'stopped', '--max', '1', ...program('stopped.log')];
    const { child, ended } = caller.start(args);
    await eventually(() => runs('stopped.log').length === 2, { what: 'the second one runs' });
    child.kill('SIGINT');
    const { code, stdout, stderr } = await ended;
    assert.equal(code, 130);
    assert.deepEqual(
      results(stdout).map(({ output }) => output),
      ['got one'],
    );
    assert.match(stderr, /stopped: 1 of 4 done.*\nthe same command goes on with the rest/);
    assert.equal((await sessionsOf('stopped')).length, 1);
    writeFileSync(go, '');
    const rest = await caller.berth(args);
    assert.equal(rest.code, 0, rest.stderr);
    assert.equal(results(rest.stdout).length, 4);
    assert.deepEqual(runs('stopped.log').filter((run) => run === 'one').length, 1);
  });

  test('leaves what runs after SIGTERM, and the same command waits for it', async () => {
    const go = path('go-later');
    const items = file('terminated.jsonl', `wait:${go}`, 'last');
    const args = ['map', items, '--name', 'terminated', '--max', '1', ...program('terminated.log')];
    const { child, ended } = caller.start(args);
    await eventually(() => runs('terminated.log').length === 1, { what: 'the first one runs' });
    child.kill('SIGTERM');
    const { code, stderr } = await ended;
    assert.equal(code, 143);
    assert.match(stderr, /sessions that still run go on \(1\), and the same command waits for them\nthe same command/);
    assert.equal((await sessionsOf('terminated')).length, 1);
    writeFileSync(go, '');
    const rest = await caller.berth(args);
    assert.deepEqual([rest.code, results(rest.stdout).length], [0, 2], rest.stderr);
    assert.equal(runs('terminated.log').length, 2, 'no line ran twice');
  });

  test('waits for what a killed call has begun, and begins anew what it left without a turn', async () => {
    const go = path('go-on');
    const items = file('killed.jsonl', `wait:${go}`, 'left');
    const args = ['map', items, '--name', 'killed', '--max', '1', ...program('killed.log')];
    const { child, ended } = caller.start(args);
    await eventually(() => runs('killed.log').length === 1, { what: 'the first one runs' });
    child.kill('SIGKILL');
    await ended;
    // A session whose turn was never created has the name and the label of the second line's.
    const [first] = await sessionsOf('killed');
    assert.ok(first);
    const shown = await caller.berth(['map', file('left.jsonl', 'left'), '--name', 'killed', ...program('killed.log')]);
    const name = results(shown.stdout)[0]?.session ?? '';
    await caller.ok('delete', name);
    const { apiVersion, kind, spec } = first;
    const metadata = { name, labels: { 'berth.dev/map': 'killed' } };
    writeFileSync(
      path('left.json'),
      JSON.stringify({ apiVersion, kind, metadata, spec: { ...spec, input: undefined } }),
    );
    await caller.ok('create', '-f', path('left.json'));
    writeFileSync(go, '');
    const rest = await caller.berth(args);
    assert.equal(rest.code, 0, rest.stderr);
    assert.deepEqual(
      results(rest.stdout).map(({ phase }) => phase),
      ['Succeeded', 'Succeeded'],
    );
    assert.equal(runs('killed.log').filter((run) => run.startsWith('wait')).length, 1);
  });

  test('gives all sessions the same files', async () => {
    const items = file('files.jsonl', { n: 2 }, { n: 3 });
    const args = [
      'map',
      items,
      '--name',
      'files',
      '--class',
      'python',
      '--with',
      'agent.py',
      '--',
      'python3',
      'agent.py',
    ];
    const printed = results(await caller.ok(...args));
    assert.deepEqual(
      printed.map(({ output }) => output),
      [
        { n: 2, square: 4 },
        { n: 3, square: 9 },
      ],
    );
    const names = (await sessionsOf('files')).map(({ spec }) => spec.agent?.files?.[0]?.configMap);
    assert.equal(new Set(names).size, 1);
    assert.deepEqual(results(await caller.ok(...args)), printed);
  });

  test('refuses a wrong call before anything runs', async () => {
    const broken = path('broken.jsonl');
    writeFileSync(broken, `${'"a"\n'.repeat(999)}{n: 1}\n`);
    const good = file('good.jsonl', 'a');
    const count = async () => (await caller.ok('list', '-o', 'name')).split('\n').length;
    const before = await count();
    const cases: [string[], RegExp][] = [
      [[broken], /broken\.jsonl line 1000 is not JSON: column 2/],
      [[path('none.jsonl')], /there is no file/],
      [[good, '--max', '0'], /'--max <number>'.*whole number from 1 to 256/],
      [[good, '--name', 'x'.repeat(41)], /--name has 41 characters; .*at most 40/],
      [[good, '--class', 'none'], /no SessionClass "none"/],
      [[good, '--rm'], /unknown option '--rm'/],
      [[file('null.jsonl', 'a', null)], /line 2: --input-as text: the input has to be a string/],
    ];
    for (const [args, message] of cases) {
      const { code, stdout, stderr } = await caller.berth(['map', ...args, ...program('wrong.log')]);
      assert.deepEqual([code, stdout], [2, ''], stderr);
      assert.match(stderr, message);
    }
    assert.equal(await count(), before);
  });
});
