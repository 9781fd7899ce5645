import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { OnTerminal } from '../../support/on-terminal.ts';
import { Caller } from './support.ts';

describe('berth artifacts', () => {
  const cwd = mkdtempSync(join(tmpdir(), 'berth-artifacts-cli-'));
  const caller = new Caller(cwd);
  const everything = (path: string) => readdirSync(join(cwd, path), { recursive: true }).map(String).sort();

  beforeAll(async () => {
    await caller.ok('local', 'up', '--detach');
    const script = `cd "$BERTH_OUTPUT_DIR"; case $(cat) in
      files) mkdir sub; printf one > sub/a; printf two > b; printf '#!/bin/sh' > run; chmod +x run; ln -s / out;;
      odd) printf x > "$(printf 'a\\nb\\033[2J')";;
    esac`;
    await caller.ok('create', 'notes', '--input-as', 'text', '--result', 'text', '--', 'sh', '-c', script);
    for (const [name, input] of [
      ['first', 'files'],
      ['second', 'odd'],
      ['third', 'none'],
    ]) {
      await caller.ok('turn', 'notes', input as string, '--name', name as string);
    }
  });
  afterAll(async () => {
    await caller.berth(['local', 'down']);
    caller.remove();
    rmSync(cwd, { recursive: true, force: true });
  });

  test('list shows the artifacts of all turns, escaped, and names what was left out', async () => {
    const { code, stdout, stderr } = await caller.berth(['artifacts', 'list', 'notes']);
    assert.equal(code, 0);
    const cells = stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3));
    assert.deepEqual(cells, [
      ['TURN', 'NAME', 'BYTES'],
      ['first', 'b', '3'],
      ['first', 'run', '9'],
      ['first', 'sub/a', '3'],
      ['second', 'a\\x0ab\\x1b[2J', '1'],
      [''],
    ]);
    assert.equal(stderr, 'turn first: left out out (Symlink)\n');
    const json = JSON.parse(await caller.ok('artifacts', 'list', 'first', '-o', 'json'));
    assert.deepEqual(
      json.items.map(({ turn, name, executable }: Record<string, unknown>) => [turn, name, executable]),
      [
        ['first', 'b', undefined],
        ['first', 'run', true],
        ['first', 'sub/a', undefined],
      ],
    );
    assert.equal(await caller.ok('artifacts', 'list', 'notes', '--turn', 'first', '-o', 'name'), 'b\nrun\nsub/a\n');
  });

  test('download writes those of a turn and prints their paths; a second time they are there', async () => {
    const args = ['artifacts', 'download', 'notes', '--turn', 'first', '-D', 'out'];
    const { code, stdout, stderr } = await caller.berth(args);
    assert.equal(code, 0, stderr);
    assert.deepEqual(everything('out'), ['b', 'run', 'sub', 'sub/a']);
    assert.equal(readFileSync(join(cwd, 'out', 'sub', 'a'), 'utf8'), 'one');
    const folder = join(cwd, 'out');
    assert.equal(stdout, `${folder}/b\n${folder}/run\n${folder}/sub/a\n`);
    assert.equal(stderr, 'turn first: 3 files written\nturn first: left out out (Symlink)\n');
    const again = await caller.berth(args);
    assert.deepEqual([again.code, again.stdout], [0, '']);
    assert.match(again.stderr, /^turn first: 0 files written, 3 already there\n/);
  });

  test('download takes single names and folders of them, and the newest turn that has artifacts', async () => {
    await caller.ok('artifacts', 'download', 'first', 'sub', 'b', '-D', 'some');
    assert.deepEqual(everything('some'), ['b', 'sub', 'sub/a']);
    const { stderr } = await caller.berth(['artifacts', 'download', 'notes', '-D', 'newest']);
    assert.equal(stderr, 'turn second: 1 file written\n');
    assert.deepEqual(everything('newest'), ['a\nb\u001b[2J']);
  });

  test('download refuses what it cannot do, with 2, before it writes anything', async () => {
    const refusal = async (...args: string[]) => {
      const { code, stderr } = await caller.berth(['artifacts', 'download', ...args, '-D', 'refused']);
      assert.equal(code, 2, stderr);
      return stderr;
    };
    assert.match(await refusal('first', 'nothing'), /turn first has no artifact "nothing"; it has b, run, sub\/a\n/);
    assert.match(await refusal('third'), /turn third has left no artifacts/);
    assert.match(await refusal('notes', '--turn', 'fourth'), /session notes has no turn "fourth"/);
    assert.match(await refusal('nobody'), /there is no session or turn "nobody"/);
    assert.throws(() => readdirSync(join(cwd, 'refused')));
    await caller.ok('artifacts', 'download', 'first', 'b', '-D', 'changed');
    writeFileSync(join(cwd, 'changed', 'b'), 'mine');
    const { code, stderr } = await caller.berth(['artifacts', 'download', 'first', '-D', 'changed']);
    assert.equal(code, 2);
    assert.match(stderr, /changed\/b exists with other content; --overwrite replaces it/);
    assert.deepEqual(everything('changed'), ['b'], 'nothing of the others is written either');
    await caller.ok('artifacts', 'download', 'first', '-D', 'changed', '--overwrite');
    assert.equal(readFileSync(join(cwd, 'changed', 'b'), 'utf8'), 'two');
  });

  test('are named at the end of a turn on a terminal, with the command that downloads them', async () => {
    const berth = join(import.meta.dirname, '..', '..', '..', 'bin', 'berth');
    const terminal = new OnTerminal(`exec ${berth} turn notes files --name shown`, caller.env, cwd);
    assert.equal(await terminal.ended, 0, terminal.shown);
    await terminal.says('its artifacts (3): berth artifacts download notes --turn shown');
  });

  test('get turn tells how many there are and how to list them', async () => {
    assert.match(
      await caller.ok('get', 'turn', 'first'),
      / {2}artifacts {3}3 files of 15 bytes, 1 left out \(berth artifacts list notes --turn first\)\n/,
    );
  });
});
