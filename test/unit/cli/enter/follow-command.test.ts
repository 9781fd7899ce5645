import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Cli } from '../../../../cli/cli.ts';
import type { Inside } from '../../../../cli/cluster/inside.ts';
import { followCommand } from '../../../../cli/enter/follow-command.ts';
import { Interrupted, OutputLost } from '../../../../cli/errors.ts';
import type { FrameStream } from '../../../../core/enter/client.ts';
import { type EnterFrame, type FrameKind, positionBytes } from '../../../../core/enter/frames.ts';
import type { CommandExit } from '../../../../core/enter/hello.ts';
import { seededRandom } from '../../../support/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

/** A user before a command whose frames the test sends. */
function user() {
  const interruption = new AbortController();
  const clock = new VirtualClock();
  const written = { stdout: '', stderr: '' };
  const lines: string[] = [];
  const sent: string[] = [];
  const frames: EnterFrame[] = [];
  let wake = () => {};
  let isClosed = false;
  const stream: FrameStream = {
    ready: { id: 'c', started: '', first: 0, next: 0, input: 0 },
    send: async (kind, ...parts) => {
      sent.push(`${kind} ${Buffer.concat(parts)}`);
      if (kind === 'exit') stream.close();
    },
    close: () => {
      isClosed = true;
      wake();
    },
    async *[Symbol.asyncIterator]() {
      while (!isClosed) {
        const frame = frames.shift();
        if (frame) yield frame;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    },
  };
  const tell = (kind: FrameKind, ...parts: Buffer[]) => {
    frames.push({ kind, payload: Buffer.concat(parts) });
    wake();
  };
  const cli = {
    name: 'berth',
    write: async (to: 'stdout' | 'stderr', bytes: Buffer) => {
      written[to] += bytes;
    },
    say: (line: string) => lines.push(line),
    clock,
    random: seededRandom(),
    interrupted: interruption.signal,
  } as unknown as Cli;
  const code = followCommand(
    { inside: { command: async () => stream } as unknown as Inside, watch: () => new Promise<never>(() => {}) },
    { id: 'c', start: { command: ['x'] }, stdin: false },
    cli,
  );
  const exit = (how: Partial<CommandExit>) =>
    tell('exit', Buffer.from(JSON.stringify({ stdout: 0, stderr: 0, lost: [], ...how })));
  return { interruption, clock, written, lines, sent, tell, exit, code };
}

const output = (stream: number, position: number, text: string) =>
  ['output', Buffer.of(stream), positionBytes(position), Buffer.from(text)] as const;

test('stdout and stderr of a command stay apart, and its exit code is the program’s', async () => {
  const { tell, exit, written, code, sent } = user();
  tell(...output(1, 0, 'out'));
  tell(...output(2, 3, 'err'));
  exit({ code: 7 });
  assert.equal(await code, 7);
  assert.deepEqual(written, { stdout: 'out', stderr: 'err' });
  assert.deepEqual(sent, ['exit ']);
});

for (const [how, expected, line] of [
  [{ signal: 'SIGKILL' }, 137, undefined],
  [{ signal: 'SIGTERM', reason: 'Timeout' }, 143, /command c: it ran longer than its timeout/],
  [{ signal: 'SIGTERM', reason: 'PodEnd' }, 255, /command c: it was ended with the session’s pod/],
] as const) {
  test(`a command that ended by ${JSON.stringify(how)} is told as ${expected}`, async () => {
    const { exit, code, lines } = user();
    exit(how);
    assert.equal(await code, expected);
    if (line) assert.match(lines.join(), line);
    else assert.deepEqual(lines, []);
  });
}

test('output that is kept no more is told with its size', async () => {
  const { tell, exit, written, code, lines } = user();
  tell('lost', positionBytes(0, 500));
  tell(...output(1, 500, 'rest'));
  exit({ code: 0 });
  assert.equal(await code, 0);
  assert.deepEqual([written.stdout, lines], ['rest', ['berth: 500 bytes of its output are kept no more']]);
});

test('Ctrl-C goes to the command, whose exit code is awaited', async () => {
  const { interruption, exit, clock, code, sent } = user();
  await clock.advance(0);
  interruption.abort(new Interrupted('SIGINT'));
  await clock.advance(60_000);
  assert.deepEqual(sent, ['signal SIGINT']);
  exit({ code: 3 });
  assert.equal(await code, 3);
});

test('a stdout that is closed is SIGPIPE for the command, and one that goes on is left after five seconds', async () => {
  const { interruption, clock, code, sent } = user();
  const lost = new OutputLost(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
  await clock.advance(0);
  interruption.abort(lost);
  const left = assert.rejects(code, lost);
  await clock.advance(5000);
  await left;
  assert.deepEqual(sent, ['signal SIGPIPE']);
});
