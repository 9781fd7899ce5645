import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, test } from 'vitest';
import { positionAt, positionBytes } from '../../../../core/enter/frames.ts';
import type { CommandListed, CommandStart, Wish } from '../../../../core/enter/hello.ts';
import { systemRandom as random, systemClock } from '../../../../core/system.ts';
import { hiddenBy } from '../../../../core/text/hidden.ts';
import { Commands } from '../../../../runner/commands/commands.ts';
import { launcher } from '../../../../runner/commands/launch.ts';
import { CommandLog, WINDOW_BYTES } from '../../../../runner/commands/log.ts';
import { Meter } from '../../../../runner/limits/meter.ts';
import { keeperStart } from '../../../../runner/process/keeper.ts';
import { directoriesUnder, makeDirectories } from '../../../../runner/system/directories.ts';
import { eventually } from '../../../support/eventually.ts';
import { skipIf } from '../../../support/requires.ts';
import { noKeeper } from '../../../support/runner-harness.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { TestVisit } from '../../../support/visit.ts';

const KEEPER = fileURLToPath(new URL('../../../../build/keeper', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'berth-commands-'));
const directories = directoriesUnder(root);
makeDirectories(directories);
afterAll(() => rmSync(root, { recursive: true, force: true }));

const agent = {
  driver: 'Command',
  command: ['true'],
  args: [],
  env: [{ name: 'GREETING', value: 'hello' }],
  input: 'None',
  result: 'Output',
};
const facts = {
  name: 'demo',
  uid: 'session-1',
  incarnation: 1,
  agent,
  secrets: new Map(),
  hidden: hiddenBy({}),
  takesArtifacts: false,
  hasFiles: false,
  hasEnvironment: false,
};

/** Commands with real processes, and a clock of their own for what takes minutes. */
class Bench implements AsyncDisposable {
  readonly clock = new VirtualClock();
  readonly meter: Meter;
  readonly commands: Commands;
  started = 0;
  readonly #visits: TestVisit[] = [];
  #ids = 0;

  constructor(limits: { processes?: number } = {}) {
    const all = { required: false, ...limits };
    this.meter = new Meter({ limits: all, together: true, clock: systemClock });
    const start = this.meter.wrap(keeperStart(KEEPER, systemClock, all), 'command');
    const launch = launcher({
      facts,
      directories,
      path: process.env.PATH ?? '',
      locate: (path: string) => path.replace(/^\/workspace/, directories.tmp),
      socket: 'no-socket',
      start,
      clock: systemClock,
    } as never);
    this.commands = new Commands({
      launch: (words) => {
        this.started += 1;
        return launch(words);
      },
      directory: directories.run,
      clock: this.clock,
      random,
    });
  }

  visit(
    wish: Extract<Wish, { want: 'command' | 'commands' | 'signal' }>,
    prepare: (visit: TestVisit) => void = () => {},
  ): TestVisit {
    const visit = new TestVisit(wish);
    this.#visits.push(visit);
    prepare(visit);
    this.commands.serve(visit);
    return visit;
  }

  /** Starts a shell script under an id of its own. */
  sh(script: string, start: Partial<CommandStart> = {}, more: { id?: string; input?: boolean } = {}): TestVisit {
    this.#ids += 1;
    const { id = `c${this.#ids}` } = more;
    return this.visit({ want: 'command', id, start: { command: ['sh', '-c', script], ...start }, ...more });
  }

  list(): CommandListed[] {
    const visit = this.visit({ want: 'commands' });
    const data = visit.frames.filter(({ kind }) => kind === 'data').map(({ payload }) => payload);
    return JSON.parse(Buffer.concat(data).toString());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.commands.stop(0);
    for (const visit of this.#visits) visit.leave();
    for (const { id } of this.list()) {
      const visit = this.visit({ want: 'command', id });
      await visit.exit();
      visit.take('exit');
    }
  }
}

test('a client that reads slowly costs the same however much output it waits for', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  let most = 0;
  const script = 'head -c 1000000 /dev/zero';
  const visit = bench.visit({ want: 'command', id: 'slow', start: { command: ['sh', '-c', script] } }, (slow) => {
    slow.isFull = true;
    slow.onSent = ({ kind }) => {
      if (kind === 'output') setImmediate(() => slow.drain());
      most = Math.max(most, getEventListeners(slow.gone, 'abort').length);
    };
  });
  await visit.exit();
  assert.equal(visit.output().length, 1_000_000);
  assert.ok(most <= 3, `${most} listeners`);
});

test('a command gives both of its streams apart and its exit code after the last byte', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  const visit = bench.sh('printf out; printf err >&2; exit 7');
  const exit = await visit.exit();
  assert.deepEqual(exit, { code: 7, stdout: 3, stderr: 3, lost: [] });
  assert.deepEqual([visit.output(1).toString(), visit.output(2).toString()], ['out', 'err']);
  assert.equal(visit.frames[0]?.kind, 'ready');
  assert.equal(visit.frames.at(-1)?.kind, 'exit');
});

test(
  'a command has the variables and the directory of the agent, and its own, and nothing of a turn',
  skipIf(noKeeper),
  async () => {
    await using bench = new Bench();
    const visit = bench.sh('echo "$GREETING $OWN $BERTH_SESSION x$BERTH_TURN $(pwd)"', { env: { OWN: 'mine' } });
    await visit.exit();
    assert.equal(visit.output().toString(), `hello mine demo x ${directories.work}\n`);
    const other = bench.sh('pwd', { cwd: '../state' });
    await other.exit();
    assert.equal(other.output().toString(), `${directories.state}\n`);
    const volume = bench.sh('pwd', { cwd: '/workspace' });
    await volume.exit();
    assert.equal(volume.output().toString(), `${directories.tmp}\n`);
  },
);

test('what cannot be started is refused with the field, and its id stays free', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  const none = bench.visit({ want: 'command', id: 'x', start: { command: ['no-such-program'] } });
  assert.match((await none.refused()).message, /start\.command: "no-such-program" is in no folder of PATH/);
  assert.equal(none.refusal?.code, 'CommandFailed');
  const nowhere = bench.sh('true', { cwd: '/no/such' });
  assert.match((await nowhere.refused()).message, /start\.cwd: \/no\/such does not exist/);
  const bad = bench.visit({ want: 'command', id: 'x', start: { command: [] } });
  assert.deepEqual([(await bad.refused()).code, bad.refusal?.field], ['Invalid', 'start.command']);
  assert.equal((await bench.sh('true', {}, { id: 'x' }).exit()).code, 0);
});

test(
  'the same id with the same words attaches, with other words it is a conflict, and nothing starts twice',
  skipIf(noKeeper),
  async () => {
    await using bench = new Bench();
    const start = { command: ['sh', '-c', 'echo once; read -r line'], stdin: true };
    const [first, second] = [
      bench.visit({ want: 'command', id: 'a', start, input: true }),
      bench.visit({ want: 'command', id: 'a', start }),
    ];
    await Promise.all([first.ready(), second.ready()]);
    const other = bench.visit({ want: 'command', id: 'a', start: { ...start, cwd: '/' } });
    assert.equal((await other.refused()).code, 'Conflict');
    assert.equal((await bench.visit({ want: 'command', id: 'b' }).refused()).code, 'CommandNotFound');
    first.input(0, 'go\n');
    for (const visit of [first, second]) {
      assert.equal((await visit.exit()).code, 0);
      assert.equal(visit.output().toString(), 'once\n');
    }
    assert.equal(bench.started, 1);
  },
);

test('a command whose exit is known is dropped, and its id starts nothing again', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  const visit = bench.sh('true', {}, { id: 'once' });
  await visit.exit();
  assert.deepEqual(
    bench.list().map(({ id, exit }) => [id, exit?.code]),
    [['once', 0]],
  );
  visit.take('exit');
  assert.deepEqual(bench.list(), []);
  assert.equal((await bench.sh('true', {}, { id: 'once' }).refused()).code, 'CommandLost');
  assert.equal(bench.started, 1);
});

test('an exit that no client has is kept for ten minutes', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  const visit = bench.sh('echo kept', {}, { id: 'kept' });
  visit.leave();
  await eventually(() => bench.list()[0]?.exit, { everyMs: 5 });
  await bench.clock.advance(599_000);
  const late = bench.visit({ want: 'command', id: 'kept' });
  assert.equal((await late.exit()).code, 0);
  assert.equal(late.output().toString(), 'kept\n');
  late.leave();
  await bench.clock.advance(2000);
  assert.deepEqual(bench.list(), []);
});

test('of the commands that have ended the newest sixteen are kept', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  for (let i = 0; i < 18; i++) {
    const visit = bench.sh('true', {}, { id: `n${i}` });
    await visit.exit();
    visit.leave();
    await bench.clock.advance(1);
  }
  assert.deepEqual([bench.list().length, bench.list()[0]?.id], [16, 'n2']);
});

test('a command that has ended is not dropped while somebody reads it', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  const visit = bench.sh('echo kept', {}, { id: 'read' });
  await visit.exit();
  await bench.clock.advance(3_000_000);
  assert.equal(bench.list().length, 1);
  visit.leave();
  await bench.clock.advance(600_000);
  assert.deepEqual(bench.list(), []);
});

test('a log that cannot be read is told to its reader, and the runner goes on', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  const read = CommandLog.prototype.read;
  CommandLog.prototype.read = () => Promise.reject(Object.assign(new Error('read'), { code: 'EIO' }));
  try {
    const visit = bench.sh('echo lost', {}, { id: 'eio' });
    assert.match((await visit.refused()).message, /the output of command eio cannot be read: EIO/);
  } finally {
    CommandLog.prototype.read = read;
  }
});

test(
  'a command that waits for its reader goes on when that comes back with all the output there is, which it had not acknowledged',
  skipIf(noKeeper),
  async () => {
    await using bench = new Bench();
    const most = 3 * WINDOW_BYTES;
    const start = { command: ['head', '-c', `${most}`, '/dev/zero'] };
    const first = bench.visit({ want: 'command', id: 'zeros', start }, (each) => {
      each.acknowledges = false;
    });
    let seen = 0;
    const stands = () => {
      const before = seen;
      seen = first.output().length;
      return seen === before && seen > WINDOW_BYTES / 2;
    };
    await eventually(stands, { everyMs: 100, what: 'the command to wait' });
    assert.ok(seen < most);
    first.leave();
    const second = bench.visit({ want: 'command', id: 'zeros', start, from: seen });
    await eventually(() => second.output().length > 0, { what: 'the command to go on' });
  },
);

test(
  'each byte of input is taken once by its position, also when it is sent again, and its end is an end of file',
  skipIf(noKeeper),
  async () => {
    await using bench = new Bench();
    const start = { command: ['cat'], stdin: true };
    const first = bench.visit({ want: 'command', id: 'cat', start, input: true });
    await first.ready();
    first.input(0, 'hello ');
    first.input(2, 'llo wor');
    await eventually(() => first.frames.some(({ kind, payload }) => kind === 'taken' && positionAt(payload) === 9), {
      everyMs: 2,
    });
    first.leave();
    const second = bench.visit({ want: 'command', id: 'cat', start, input: true, from: 0 });
    assert.equal((await second.ready()).input, 9);
    second.input(0, 'hello world');
    second.take('inputEnd', positionBytes(11));
    assert.equal((await second.exit()).code, 0);
    assert.equal(second.output().toString(), 'hello world');
  },
);

test(
  'input that skips bytes is refused, and the newest client that wants it has the input',
  skipIf(noKeeper),
  async () => {
    await using bench = new Bench();
    const start = { command: ['cat'], stdin: true };
    const first = bench.visit({ want: 'command', id: 'cat', start, input: true });
    await first.ready();
    const reader = bench.visit({ want: 'command', id: 'cat', start });
    await reader.ready();
    first.input(0, 'a');
    const second = bench.visit({ want: 'command', id: 'cat', start, input: true });
    await second.ready();
    first.input(1, 'from the old one');
    reader.input(1, 'from a reader');
    second.input(1, 'b');
    second.take('inputEnd', positionBytes(2));
    await second.exit();
    assert.equal(second.output().toString(), 'ab');
    const third = bench.visit({ want: 'command', id: 'cat2', start, input: true });
    await third.ready();
    third.input(5, 'x');
    assert.match((await third.refused()).message, /skips bytes; the next one has the position 0/);
  },
);

test(
  'a foreground command that prints 100 MB waits for a reader that stalls, and no byte is lost',
  skipIf(noKeeper),
  async () => {
    await using bench = new Bench();
    const visit = bench.visit(
      { want: 'command', id: 'big', start: { command: ['head', '-c', '100000000', '/dev/zero'] } },
      (each) => {
        each.acknowledges = false;
      },
    );
    const written = () =>
      visit.frames.reduce((sum, { kind, payload }) => sum + (kind === 'output' ? payload.length - 9 : 0), 0);
    await eventually(() => written() >= 8_000_000, { everyMs: 5 });
    let before = -1;
    await eventually(
      () => {
        const now = written();
        const same = now === before;
        before = now;
        return same;
      },
      { everyMs: 50 },
    );
    assert.ok(before < 10_000_000, `${before} bytes without an acknowledgement`);
    assert.equal(bench.list()[0]?.exit, undefined);
    visit.acknowledges = true;
    visit.take('acknowledge', positionBytes(before));
    const exit = await visit.exit();
    assert.deepEqual([exit.code, exit.stdout, exit.lost], [0, 100_000_000, []]);
    assert.equal(written(), 100_000_000);
  },
);

test(
  'a detached command waits for nobody: its newest output is kept, and what is gone is told as a range',
  skipIf(noKeeper),
  async () => {
    await using bench = new Bench();
    const start = { command: ['sh', '-c', 'head -c 100000000 /dev/zero; echo end'], detach: true };
    bench.visit({ want: 'command', id: 'd', start }).leave();
    const exit = await eventually(() => bench.list()[0]?.exit, { everyMs: 20 });
    assert.equal(exit.stdout, 100_000_004);
    const [[from, to] = [-1, -1]] = exit.lost;
    assert.ok(from === 0 && to > 30_000_000 && to < 40_000_000, `${from}-${to}`);
    const late = bench.visit({ want: 'command', id: 'd' });
    await late.exit();
    const lost = late.frames.find(({ kind }) => kind === 'lost');
    assert.deepEqual([positionAt(lost?.payload as Buffer), positionAt(lost?.payload as Buffer, 8)], [0, to]);
    assert.equal(late.output().length, 100_000_004 - to);
    assert.equal(late.output().subarray(-4).toString(), 'end\n');
  },
);

test(
  'a foreground command is ended a minute after its last client has gone, a detached one is not',
  skipIf(noKeeper),
  async () => {
    await using bench = new Bench();
    const detached = bench.sh('exec sleep 1000', { detach: true }, { id: 'd' });
    const visit = bench.sh('exec sleep 1000', {}, { id: 'f' });
    await Promise.all([visit.ready(), detached.ready()]);
    visit.leave();
    detached.leave();
    await bench.clock.advance(59_000);
    const back = bench.visit({ want: 'command', id: 'f' });
    await back.ready();
    await bench.clock.advance(120_000);
    back.leave();
    await bench.clock.advance(61_000);
    const exit = await eventually(() => bench.list().find(({ id }) => id === 'f')?.exit, { everyMs: 5 });
    assert.deepEqual([exit.signal, exit.reason], ['SIGTERM', 'NoReader']);
    assert.equal(bench.list().find(({ id }) => id === 'd')?.exit, undefined);
  },
);

test('a command that ignores SIGTERM is killed when its time is over', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  const visit = bench.sh('trap "" TERM; echo ready; while :; do sleep 1; done', { timeoutSeconds: 30 });
  await eventually(() => visit.output().length > 0, { everyMs: 5 });
  await bench.clock.advance(30_000);
  await bench.clock.advance(5000);
  const exit = await visit.exit();
  assert.deepEqual([exit.signal, exit.reason], ['SIGKILL', 'Timeout']);
});

test(
  'processes that outlive their command may write their last output, and are killed before the exit is told',
  skipIf(noKeeper),
  async () => {
    await using bench = new Bench();
    const daemon = 'trap "" TERM HUP; echo $$ >daemon; exec sleep 1000';
    const visit = bench.sh(`(sleep 0.05; echo late) & setsid sh -c '${daemon}' & echo first; exit 3`);
    await eventually(() => visit.output().toString() === 'first\nlate\n', { everyMs: 5 });
    const pid = await eventually(() => Number(readFileSync(join(directories.work, 'daemon'), 'utf8')), { everyMs: 5 });
    assert.ok(existsSync(`/proc/${pid}`));
    await bench.clock.advance(1000);
    assert.equal((await visit.exit()).code, 3);
    assert.ok(!existsSync(`/proc/${pid}`));
  },
);

test('signals of a client reach the command; how it ends then is its own', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  const script = 'trap "echo caught; exit 130" INT; echo ready; while :; do sleep 0.05; done';
  const visit = bench.sh(script);
  await eventually(() => visit.output().length > 0, { everyMs: 5 });
  visit.take('signal', Buffer.from('SIGINT'));
  assert.deepEqual(await visit.exit(), { code: 130, stdout: 13, stderr: 0, lost: [] });
  const other = bench.sh('echo ready; exec sleep 1000', {}, { id: 'k' });
  await eventually(() => other.output().length > 0, { everyMs: 5 });
  const killer = bench.visit({ want: 'signal', id: 'k', signal: 'SIGKILL' });
  assert.deepEqual(
    [(await other.exit()).signal, other.json<{ reason: string }>('exit')?.reason],
    ['SIGKILL', 'Signal'],
  );
  assert.ok(killer.isClosed && !killer.refusal);
  const wrong = bench.visit({ want: 'signal', id: 'k', signal: 'SIGNOTHING' });
  assert.deepEqual([(await wrong.refused()).code, wrong.refusal?.field], ['Invalid', 'signal']);
});

test(
  'during a suspension commands stand still, their time stands, and none is started; then they go on',
  skipIf(noKeeper),
  async () => {
    await using bench = new Bench();
    const visit = bench.sh('echo $$; while :; do echo tick; sleep 0.01; done', { timeoutSeconds: 10 });
    await eventually(() => visit.output().length > 0, { everyMs: 5 });
    bench.commands.suspend(true);
    bench.meter.standCommands(true);
    await bench.meter.whileHeld(async () => {});
    assert.equal((await bench.sh('true').refused()).code, 'Suspended');
    await bench.clock.advance(60_000);
    const pid = visit.output().toString().split('\n')[0];
    assert.match(readFileSync(`/proc/${pid}/stat`, 'utf8'), /\) T /);
    assert.equal(bench.list()[0]?.exit, undefined);
    bench.commands.suspend(false);
    bench.meter.standCommands(false);
    const stood = visit.output().length;
    await eventually(() => visit.output().length > stood + 50, { everyMs: 5 });
    await bench.clock.advance(10_000);
    assert.equal((await visit.exit()).reason, 'Timeout');
  },
);

test(
  'commands keep a session busy while they run, and idle time counts from the last byte',
  skipIf(noKeeper),
  async () => {
    await using bench = new Bench();
    assert.equal(bench.commands.idleMs, undefined);
    const visit = bench.sh('read -r line', { stdin: true }, { input: true });
    await visit.ready();
    await bench.clock.advance(5000);
    assert.equal(bench.commands.idleMs, 0);
    visit.take('inputEnd', positionBytes(0));
    await visit.exit();
    await bench.clock.advance(7000);
    assert.equal(bench.commands.idleMs, 7000);
  },
);

test('at the end of the pod commands end, and their clients hear it', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  const visit = bench.sh('echo ready; exec sleep 1000');
  await eventually(() => visit.output().length > 0, { everyMs: 5 });
  await bench.commands.stop(0);
  assert.equal((await visit.exit()).reason, 'PodEnd');
  assert.equal((await bench.sh('true').refused()).code, 'Stopping');
});

test('binary output comes as it is', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  const visit = bench.visit({ want: 'command', id: 'bin', start: { command: ['cat', KEEPER] } });
  await visit.exit();
  assert.ok(visit.output().equals(readFileSync(KEEPER)));
});

test('more than sixteen commands at once are refused', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  const visits = Array.from({ length: 16 }, () => bench.sh('exec sleep 1000'));
  await Promise.all(visits.map((visit) => visit.ready()));
  assert.equal((await bench.sh('true').refused()).code, 'TooManyCommands');
});

test(
  'a command counts in the process limit of the session, and the largest family ends',
  skipIf(noKeeper),
  async () => {
    await using bench = new Bench({ processes: 20 });
    const visit = bench.sh('for i in $(seq 40); do sleep 1000 & done; wait');
    assert.equal((await visit.exit()).reason, 'ProcessLimit');
  },
);

test('a command on a terminal has the size that its client tells, and hears of Ctrl-C', skipIf(noKeeper), async () => {
  await using bench = new Bench();
  const start = { stdin: true, tty: { rows: 10, columns: 20, term: 'xterm' } };
  const visit = bench.sh('echo $TERM; stty size; read -r line; stty size; exec sleep 1000', start, { input: true });
  await eventually(() => visit.output().toString().includes('10 20'), { everyMs: 5 });
  assert.match(visit.output().toString(), /^xterm\r\n10 20\r\n/);
  visit.take('resize', Buffer.from([0, 30, 0, 40]));
  visit.input(0, '\n');
  await eventually(() => visit.output().toString().includes('30 40'), { everyMs: 5 });
  visit.input(1, '\x03');
  const exit = await visit.exit();
  assert.deepEqual([exit.signal, exit.stderr], ['SIGINT', 0]);
});
