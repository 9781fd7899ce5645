import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, describe, test } from 'vitest';
import { EnterError, type FrameStream } from '../../../../core/enter/client.ts';
import { RemoteCommand, type RemoteCommandOptions } from '../../../../core/enter/command.ts';
import type { EnterFrame } from '../../../../core/enter/frames.ts';
import type { CommandExit, Wish } from '../../../../core/enter/hello.ts';
import { TransportError } from '../../../../core/kube/errors.ts';
import type { Random } from '../../../../core/runtime.ts';
import { systemClock } from '../../../../core/system.ts';
import { Commands } from '../../../../runner/commands/commands.ts';
import type { Contained } from '../../../../runner/process/contained.ts';
import type { Exit } from '../../../../runner/process/exit.ts';
import { seededRandom } from '../../../support/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { TestVisit } from '../../../support/visit.ts';

const directory = mkdtempSync(join(tmpdir(), 'berth-command-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A process that prints its input, its errors apart, and ends with 5 at the end of it. */
function echo(): Contained {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const { promise: exited, resolve } = Promise.withResolvers<Exit>();
  const end = (exit: Exit) => {
    stdout.end();
    stderr.end();
    resolve(exit);
  };
  stdin.on('data', (bytes: Buffer) => {
    stdout.write(bytes);
    stderr.write('.');
  });
  stdin.on('end', () => end({ code: 5, signal: null }));
  const kill = () => end({ code: null, signal: 'SIGKILL' });
  const gone = exited.then(() => {});
  return { pid: 1, stdin, stdout, stderr, exited, gone, kill, terminate: kill } as unknown as Contained;
}

/** Speed of the client's waits: a try after a lost connection comes at once. */
const EAGER = { ...systemClock, setTimer: (_: number, fn: () => void) => systemClock.setTimer(0, fn) };

/** A runner and the network to it, which loses connections. */
class Pod {
  starts = 0;
  connections = 0;
  readonly commands: Commands;
  /** Returns the number of frames after which a connection is lost; the last of them is lost with it. */
  lasts: () => number = () => Number.POSITIVE_INFINITY;
  /** Set: a connection is refused. */
  refuses: EnterError | undefined;
  readonly #visits: TestVisit[] = [];

  constructor(random: Random = seededRandom()) {
    const launch = async () => {
      this.starts += 1;
      return echo();
    };
    this.commands = new Commands({ launch, directory, clock: new VirtualClock(), random });
  }

  readonly open = async (wish: Wish): Promise<FrameStream> => {
    this.connections += 1;
    if (this.refuses) throw this.refuses;
    let left = this.lasts();
    const frames: EnterFrame[] = [];
    let wake = () => {};
    let isClosed = false;
    const visit = new TestVisit(wish);
    visit.acknowledges = false;
    this.#visits.push(visit);
    const lose = () => {
      visit.leave();
      wake();
    };
    /** Counts a frame, in whichever direction; false where it is lost. */
    const passes = () => {
      left -= 1;
      if (left <= 0) lose();
      return left > 0;
    };
    visit.onSent = (frame) => {
      if (!passes()) return;
      frames.push(frame);
      wake();
    };
    const next = async (): Promise<EnterFrame | undefined> => {
      for (;;) {
        const frame = frames.shift();
        if (frame || isClosed) return frame;
        if (visit.refusal) throw new EnterError(visit.refusal);
        if (visit.gone.aborted) throw new TransportError('the connection was lost');
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    };
    visit.gone.addEventListener('abort', () => wake());
    if (passes()) this.commands.serve(visit);
    const ready = await next();
    assert.equal(ready?.kind, 'ready');
    return {
      ready: JSON.parse(ready.payload.toString()),
      send: async (kind, ...parts) => {
        if (!passes()) throw new TransportError('the connection was lost');
        visit.take(kind, ...parts);
      },
      close: () => {
        isClosed = true;
        visit.leave();
        wake();
      },
      async *[Symbol.asyncIterator]() {
        for (let frame = await next(); frame; frame = await next()) yield frame;
      },
    };
  };

  async [Symbol.asyncDispose](): Promise<void> {
    for (const visit of this.#visits) visit.leave();
    await this.commands.stop(0);
    const list = new TestVisit({ want: 'commands' });
    this.commands.serve(list);
    const rows = JSON.parse(
      Buffer.concat(list.frames.filter(({ kind }) => kind === 'data').map((f) => f.payload)).toString(),
    );
    for (const { id } of rows) {
      const last = new TestVisit({ want: 'command', id });
      this.commands.serve(last);
      await last.exit();
      last.take('exit');
    }
  }
}

interface Seen {
  exit: CommandExit;
  stdout: Buffer;
  stderr: Buffer;
  lost: [number, number][];
}

async function run(pod: Pod, pieces: readonly Buffer[], options: Partial<RemoteCommandOptions> = {}): Promise<Seen> {
  const out: Record<1 | 2, Buffer[]> = { 1: [], 2: [] };
  const lost: [number, number][] = [];
  const exit = await new RemoteCommand({
    open: pod.open,
    id: 'c',
    start: { command: ['echo'], stdin: true },
    input: (async function* () {
      yield* pieces;
    })(),
    onOutput: (stream, bytes) => void out[stream].push(Buffer.from(bytes)),
    onLost: (...range) => void lost.push(range),
    clock: EAGER,
    random: seededRandom(),
    signal: new AbortController().signal,
    ...options,
  }).run();
  return { exit, stdout: Buffer.concat(out[1]), stderr: Buffer.concat(out[2]), lost };
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

describe('a client whose connections are lost', () => {
  const pieces = [Buffer.from('hello '), Buffer.alloc(40_000, 7), Buffer.from('world')];
  const whole = Buffer.concat(pieces);

  test('at any one frame gets each byte once and the true exit code, and the command gets each byte of input once', async () => {
    for (let frames = 1; frames < 25; frames++) {
      await using pod = new Pod();
      pod.lasts = () => (pod.connections === 1 ? frames : Number.POSITIVE_INFINITY);
      const { exit, stdout, lost } = await run(pod, pieces);
      assert.equal(exit.code, 5, `lost at frame ${frames}`);
      assert.equal(digest(stdout), digest(whole), `lost at frame ${frames}`);
      assert.deepEqual([pod.starts, exit.stdout, lost], [1, whole.length, []]);
    }
  });

  test('again and again, while it sends and gets megabytes, does as well', async () => {
    for (const seed of [1, 2, 3, 4]) {
      const dice = seededRandom(seed);
      await using pod = new Pod();
      pod.lasts = () => 4 + Math.floor(dice.uniform() * 60);
      const input = Array.from({ length: 60 }, (_, i) => Buffer.alloc(Math.floor(dice.uniform() * 90_000), i));
      const { exit, stdout, stderr } = await run(pod, input);
      assert.equal(exit.code, 5);
      assert.equal(digest(stdout), digest(Buffer.concat(input)), `seed ${seed}`);
      assert.equal(stderr.length, exit.stderr);
      assert.equal(pod.starts, 1);
      assert.ok(pod.connections > 5, `${pod.connections} connections`);
    }
  });
});

test('a command in a pod that was replaced is lost and never started again', async () => {
  await using pod = new Pod();
  pod.lasts = () => 3;
  const endless = async function* () {
    yield Buffer.from('x');
    pod.refuses = new EnterError({ code: 'PodReplaced', message: 'another pod' });
    yield Buffer.from('y');
    await new Promise(() => {});
  };
  await assert.rejects(run(pod, [], { input: endless() }), {
    code: 'CommandLost',
    message: /command c is lost: another pod/,
  });
  assert.equal(pod.starts, 1);
});

test('where the start’s answer was lost with the pod, it says that it does not know', async () => {
  await using pod = new Pod();
  pod.lasts = () => {
    pod.refuses = new EnterError({ code: 'PodReplaced', message: 'another pod' });
    return 1;
  };
  await assert.rejects(run(pod, []), {
    code: 'CommandLost',
    message: /whether command c was started is not known: another pod/,
  });
});

test('a refusal of the first connection is told at once; a suspension in the middle is waited out, as it may be undone', async () => {
  await using pod = new Pod();
  pod.refuses = new EnterError({ code: 'Suspended', message: 'the session is suspended' });
  await assert.rejects(run(pod, []), { code: 'Suspended' });
  assert.equal(pod.connections, 1);
  pod.refuses = undefined;
  pod.lasts = () => (pod.connections === 2 ? 3 : Number.POSITIVE_INFINITY);
  const input = async function* () {
    yield Buffer.from('x');
    pod.refuses = new EnterError({ code: 'Suspended', message: 'the session is suspended' });
    systemClock.setTimer(50, () => {
      pod.refuses = undefined;
    });
  };
  assert.equal((await run(pod, [], { input: input() })).exit.code, 5);
});

test('what the watch tells ends the wait, also while a connection says nothing', async () => {
  await using pod = new Pod();
  const silent = (async function* () {
    await new Promise(() => {});
    yield Buffer.alloc(0);
  })();
  const gone = Promise.withResolvers<never>();
  const running = run(pod, [], {
    input: silent,
    watch: () => gone.promise,
    onReady: () => gone.reject(new EnterError({ code: 'Suspended', message: 'the session was suspended' })),
  });
  await assert.rejects(running, { code: 'Suspended', message: 'the session was suspended' });
});

test('connections that fail for two minutes end the wait with their error', async () => {
  const clock = new VirtualClock();
  let tries = 0;
  const running = run(new Pod(), [], {
    clock,
    open: () => {
      tries += 1;
      return Promise.reject(new TransportError('no route'));
    },
  });
  const failed = assert.rejects(running, /no route/);
  await clock.advance(130_000);
  await failed;
  assert.ok(tries > 10);
});

test('a signal reaches the command, over the next connection where there is none', async () => {
  await using pod = new Pod();
  const endless = (async function* () {
    await new Promise(() => {});
    yield Buffer.alloc(0);
  })();
  const command = new RemoteCommand({
    open: pod.open,
    id: 'c',
    start: { command: ['echo'], stdin: true },
    input: endless,
    onOutput: () => {},
    onLost: () => {},
    clock: EAGER,
    random: seededRandom(),
    signal: new AbortController().signal,
  });
  const running = command.run();
  command.signal('SIGKILL');
  assert.deepEqual([(await running).signal, (await running).reason], ['SIGKILL', 'Signal']);
});
