import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { systemClock } from '../../../core/system.ts';
import type { Contained } from '../../../runner/process/contained.ts';
import { groupStart } from '../../../runner/process/group.ts';
import { keeperStart } from '../../../runner/process/keeper.ts';
import { eventually } from '../../support/eventually.ts';
import { skipIf, skipWithout } from '../../support/requires.ts';

const KEEPER = fileURLToPath(new URL('../../../build/keeper', import.meta.url));
const noKeeper = skipWithout('keeper', existsSync(KEEPER), 'there is no build/keeper: run make keeper');
/** Runs of what is lost now and then where it is done wrong; BERTH_TERMINALS=300 looks longer. */
const RUNS = Number(process.env.BERTH_TERMINALS ?? 50);
const SIZE = { rows: 31, columns: 97 };

describe('a program on a terminal', skipIf(noKeeper), () => {
  let cwd: string;
  beforeAll(() => {
    cwd = mkdtempSync(join(tmpdir(), 'berth-terminal-'));
  });
  afterAll(() => rmSync(cwd, { recursive: true, force: true }));

  /** Starts a shell with arguments; `text` is what came so far. */
  async function start(args: string[], tty = SIZE) {
    const run = keeperStart(KEEPER, systemClock, { required: false });
    const env = { PATH: process.env.PATH ?? '', TERM: 'dumb', PS1: 'ready> ' };
    const family = await run({ file: '/bin/sh', argv0: 'sh', args, cwd, env, tty });
    const shown = { text: '', errors: 0 };
    family.stdout.setEncoding('latin1').on('data', (chunk: string) => {
      shown.text += chunk;
    });
    family.stderr.on('data', (chunk: Buffer) => {
      shown.errors += chunk.length;
    });
    const shows = (what: RegExp | string) =>
      eventually(() => (typeof what === 'string' ? shown.text.includes(what) : what.test(shown.text)), {
        what: `${what} on the terminal`,
      });
    const end = async () => {
      family.kill();
      await family.gone;
    };
    return { family, shown, shows, [Symbol.asyncDispose]: end };
  }
  const sh = (script: string) => start(['-c', script]);
  const ended = ({ stdout, stderr }: Contained) =>
    Promise.all(
      [stdout, stderr].map((stream) => stream.closed || new Promise((resolve) => stream.once('close', resolve))),
    );

  test('has it on all three streams, leads its session, and finds its size and its changes', async () => {
    await using running = await sh(
      'trap "stty size" WINCH; for n in 0 1 2; do test -t $n && echo $n; done; stty size </dev/tty; ps -o tpgid= -p $$; echo $$; while :; do sleep 0.01; done',
    );
    const { family, shown, shows } = running;
    await shows(/0\r\n1\r\n2\r\n31 97\r\n *(\d+)\r\n\1\r\n/);
    family.resize({ rows: 50, columns: 200 });
    await shows('50 200\r\n');
    assert.equal(shown.errors, 0);
  });

  test('is interrupted by the byte of Ctrl-C, and by a signal for whoever is in the foreground', async () => {
    await using running = await start(['-i']);
    const { family, shows, shown } = running;
    await shows('ready> ');
    for (const interrupt of [() => family.stdin.write('\x03'), () => family.signal('SIGINT')]) {
      shown.text = '';
      family.stdin.write('(trap "" TERM; echo sleeps; exec sleep 1000)\n');
      await shows('sleeps\r\n');
      interrupt();
      await shows('ready> ');
      family.stdin.write('echo $(($? + 1000))\n');
      await shows('1130');
    }
  });

  test('has job control: a stopped job is listed, and goes on', async () => {
    await using running = await start(['-i']);
    const { family, shows, shown } = running;
    await shows('ready> ');
    assert.ok(!/job control turned off/.test(shown.text), shown.text);
    family.stdin.write('cat\n');
    await eventually(async () => (await family.survivors()).some(({ command }) => command === 'cat'));
    family.stdin.write('\x1a');
    await shows(/Stopped|Suspended/);
    shown.text = '';
    family.stdin.write('fg\n');
    await shows(/fg\r\ncat\r\n/);
    family.stdin.write('still there\n');
    await shows('still there\r\nstill there\r\n');
    family.stdin.write('\x04exit 7\n');
    assert.deepEqual(await family.exited, { code: 7, signal: null });
  });

  test('finds the end of its input, also within a line', async () => {
    for (const words of ['a line\n', 'no line']) {
      await using running = await sh('stty -echo; echo ready; cat; echo over');
      await running.shows('ready\r\n');
      running.family.stdin.end(words);
      assert.deepEqual(await running.family.exited, { code: 0, signal: null });
      await running.shows(`${words.trim()}${words.endsWith('\n') ? '\r\n' : ''}over\r\n`);
    }
  });

  test('takes bytes away that are longer than one where the terminal edits the line', async () => {
    await using running = await sh('stty -echo; echo ready; read word; echo "<$word>"');
    await running.shows('ready\r\n');
    running.family.stdin.write('\u00fc\x7fa\n');
    await running.shows('<a>\r\n');
  });

  test('gives every byte as it is, in raw mode, and takes every byte', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 * 400 }, (_, i) => (i * 7 + (i >> 8)) % 256));
    await using running = await sh(`stty raw -echo; echo ready; head -c ${bytes.length}`);
    await running.shows('ready');
    running.family.stdin.write(bytes);
    await running.family.exited;
    await eventually(() => running.shown.text.length === bytes.length + 'ready\n'.length);
    assert.ok(Buffer.from(running.shown.text.slice('ready\n'.length), 'latin1').equals(bytes));
  });

  test('loses no byte of what it writes last, whoever else has the terminal', async () => {
    const once = async (number: number) => {
      const bytes = (number * 79_190) % 90_000;
      const left = number % 2 ? 'trap "" HUP; sleep 1000 & ' : '';
      await using running = await sh(`stty -onlcr; ${left}head -c ${bytes} /dev/zero; printf end`);
      const { family, shown } = running;
      await Promise.all([family.exited, ended(family)]);
      assert.equal(shown.text.length, bytes + 3, `run ${number}`);
      assert.ok(shown.text.endsWith('end'));
      assert.equal(family.written?.stdout, bytes + 3);
    };
    for (let i = 0; i < RUNS; i += 5) await Promise.all([1, 2, 3, 4, 5].map((more) => once(i + more)));
  });

  test('waits while nobody reads, and loses nothing then either', async () => {
    const size = 3_000_000;
    await using running = await sh(`stty -onlcr; head -c ${size} /dev/zero; printf end`);
    const { family, shown } = running;
    family.stdout.pause();
    await eventually(() => family.usage !== undefined, { what: 'a look at the family' });
    let over = false;
    family.exited.then(() => {
      over = true;
    });
    assert.ok(!over);
    family.stdout.resume();
    await Promise.all([family.exited, ended(family)]);
    assert.equal(shown.text.length, size + 3);
  });

  test('that ends takes the terminal from what it leaves running, which goes on without one', async () => {
    const left =
      'trap "" HUP; (until [ -f go ]; do sleep 0.01; done; echo lost; echo "write $?" >told; exec sleep 1000)';
    await using running = await sh(`${left} & echo started`);
    const { family, shown } = running;
    assert.deepEqual(await family.exited, { code: 0, signal: null });
    await ended(family);
    const [survivor] = await family.survivors();
    assert.ok(survivor);
    writeFileSync(join(cwd, 'go'), '');
    await eventually(() => existsSync(join(cwd, 'told')) && readFileSync(join(cwd, 'told'), 'utf8') !== '');
    assert.match(readFileSync(join(cwd, 'told'), 'utf8'), /write [1-9]/);
    assert.equal(shown.text, 'started\r\n');
  });

  test('ends although a process that it left floods the terminal', async () => {
    await using running = await sh('(trap "" HUP; while :; do echo flood; done) & sleep 0.05; exit 3');
    const { family } = running;
    assert.deepEqual(await family.exited, { code: 3, signal: null });
    await ended(family);
  });

  test('that is a shell waiting for a command ends when it is told to terminate, and its foreground job with it', async () => {
    for (const line of ['', 'sleep 1000\n']) {
      await using running = await start(['-i']);
      const { family, shows } = running;
      await shows('ready> ');
      if (line) {
        family.stdin.write(line);
        await eventually(async () => (await family.survivors()).length > 0);
      }
      family.terminate();
      await family.exited;
      await family.gone;
    }
  });

  test('that is held says nothing, keeps what is typed, and goes on', async () => {
    await using running = await start(['-i']);
    const { family, shows, shown } = running;
    await shows('ready> ');
    for (let i = 1; i <= 10; i++) {
      shown.text = '';
      assert.deepEqual(await family.hold(), { named: [], count: 0 });
      family.stdin.write(`echo $((${i} + 500))\n`);
      family.signal('SIGCONT');
      family.resize({ rows: 20 + i, columns: 80 });
      await family.survivors();
      assert.ok(!shown.text.includes(`${i + 500}`), shown.text);
      family.release();
      await shows(`${i + 500}`);
    }
    family.stdin.write('stty size\n');
    await shows('30 80');
    assert.ok(!/Stopped|Suspended/.test(shown.text), shown.text);
  });

  test('without one is signalled as a group, and only while the group is there', async () => {
    const run = keeperStart(KEEPER, systemClock, { required: false });
    const script =
      'trap "echo told; exit 4" USR1; (trap "echo child >&2; exit" USR1; echo ready; while :; do sleep 0.01; done) & while :; do sleep 0.01; done';
    const env = { PATH: process.env.PATH ?? '' };
    const family = await run({ file: '/bin/sh', argv0: 'sh', args: ['-c', script], cwd, env });
    const said = { out: '', err: '' };
    family.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      said.out += chunk;
    });
    family.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      said.err += chunk;
    });
    await eventually(() => said.out.includes('ready'));
    const over = ended(family);
    family.resize(SIZE);
    family.signal('SIGUSR1');
    assert.deepEqual(await family.exited, { code: 4, signal: null });
    await Promise.all([family.gone, over]);
    family.signal('SIGUSR1');
    assert.equal(said.out, 'ready\ntold\n');
    assert.match(said.err, /child\n/);
  });

  test('dies with its keeper', async () => {
    await using running = await start(['-i']);
    await running.shows('ready> ');
    const stat = readFileSync(`/proc/${running.family.pid}/stat`, 'latin1');
    process.kill(Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]), 'SIGKILL');
    assert.deepEqual(await running.family.exited, { code: null, signal: 'SIGKILL' });
    await eventually(() => !isRunning(running.family.pid));
  });
});

/** Reports whether a process is there and no zombie. */
function isRunning(pid: number): boolean {
  const path = `/proc/${pid}/stat`;
  return existsSync(path) && !/^\) [ZX]/.test(readFileSync(path, 'latin1').replace(/^.*(?=\) )/s, ''));
}

test('where there is no keeper a program that needs a terminal is not started', async () => {
  const spec = { file: '/bin/sh', argv0: 'sh', args: ['-c', 'exit'], cwd: '/', env: {}, tty: SIZE };
  await assert.rejects(groupStart(systemClock, { required: false })(spec), { step: 'terminal', code: 'NoKeeper' });
});
