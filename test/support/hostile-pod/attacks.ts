import { randomBytes } from 'node:crypto';
import { readyText } from '../../../core/frames/encode.ts';
import type { Ready } from '../../../core/frames/messages.ts';
import { CLOSE, END, frameHeader, MAX_BODY_CHARS, START } from '../../../core/frames/wire.ts';

/** What a pod that is bound knows: the `ready` that it gave, and frames that its keys seal. */
export interface Bound {
  ready: Ready;
  /** Texts of the parts of a sealed frame with the next number. */
  frame(kind: string, message: object, binary?: Buffer): string[];
  /** Leaves a number out. */
  skip(): void;
}

/** Texts that a pod prints: without end on its stdout, or a log on its stderr before it dies at once. */
export type Attack =
  | { print(bound: Bound): Iterable<string | Buffer> }
  /** Text that a pod prints again and again from its start, before anybody has bound it. */
  | { fromStart: string }
  | { log(bound: Bound): Iterable<string | Buffer> }
  | 'Mute';

const MiB = 1024 * 1024;
const CHUNK = 64 * 1024;
/** Size of a log that a container runtime keeps. */
const LOG_BYTES = 10 * MiB;
const DIGEST = 'a'.repeat(64);

const header = ({ session = 's', incarnation = 1, boot }: Ready, seq: number, kind = 'log') =>
  `${START}${frameHeader({ session, incarnation, boot, seq, kind, part: 1, parts: 1 })}${CLOSE}\n`;
const filled = (unit: string) => unit.repeat(Math.ceil(CHUNK / unit.length));

function* forever<T>(make: () => T): Generator<T> {
  for (;;) yield make();
}

/** Attack that prints the same text again and again. */
const repeats = (text: (bound: Bound) => string | Buffer): Attack => ({
  *print(bound) {
    const chunk = text(bound);
    yield* forever(() => chunk);
  },
});

/** Attack that prints frames of its own key. */
const frames = (next: (bound: Bound) => Iterable<string>): Attack => ({
  *print(bound) {
    for (;;) yield* next(bound);
  },
});

/** Attack that has its log filled with lines up to the runtime's limit, behind what it begins with. */
const logs = (begin: (bound: Bound) => string, line: (bound: Bound) => string): Attack => ({
  *log(bound) {
    yield begin(bound);
    for (let bytes = 0; bytes < LOG_BYTES - CHUNK; ) {
      const text = line(bound);
      bytes += text.length;
      yield text;
    }
  },
});

const result = (turn: string) => ({
  turn,
  attempt: 1,
  outcome: 'Succeeded',
  output: 'x',
  startedAt: '2026-01-01T00:00:00.000Z',
  finishedAt: '2026-01-01T00:00:01.000Z',
  state: 'Unchanged',
  leftRunning: [],
});
const strayState = (bytes: number) =>
  [{ turn: 'no-such-turn', digest: DIGEST, keyId: 'k', bytes }, Buffer.alloc(bytes, 1)] as const;
const PONG = { n: 1, incarnation: 1, idleMs: 0, suspended: false };
const BODY = `${'A'.repeat(MAX_BODY_CHARS)}\n`;

/** All attacks, by name. */
export const ATTACKS = {
  'empty-lines': repeats(() => filled('\n')),
  markers: repeats(() => filled(`${START}${CLOSE}\n`)),
  headers: repeats(({ ready }) => filled(header(ready, 1))),
  forged: repeats(({ ready }) => filled(`${header(ready, 1)}${'A'.repeat(60)}\n${END}1/1${CLOSE}\n`)),
  epochs: repeats(({ ready }) => filled(readyText({ ...ready, epoch: 2 ** 31 - 2, proof: 'A'.repeat(43) }))),
  binary: repeats(() => randomBytes(CHUNK)),
  'huge-line': repeats(() => 'x'.repeat(CHUNK)),
  strays: frames(({ frame }) => frame('state', ...strayState(8 * MiB))),
  // A result whose turn nobody knows.
  results: frames(({ frame }) => frame('result', result(crypto.randomUUID()))),
  gaps: frames(({ frame, skip }) => {
    skip();
    return frame('pong', PONG);
  }),
  // A message of 60 MiB without its last part, again and again.
  parts: frames(({ frame }) => frame('state', ...strayState(60 * MiB)).slice(0, -1)),
  'base64-log': logs(
    ({ ready }) => header(ready, 1).repeat(4),
    () => `${'A'.repeat(40)}\n`.repeat(1_000),
  ),
  'body-log': logs(
    ({ ready }) => header(ready, 1),
    ({ ready }) => `${header(ready, 2)}${BODY.repeat(40)}${END}2/1${CLOSE}\n${END}3/1${CLOSE}\n`,
  ),
  'gap-log': logs(
    () => '',
    ({ frame, skip }) => {
      skip();
      return frame('pong', PONG).join('');
    },
  ),
  'from-start': { fromStart: filled('\n') },
  mute: 'Mute',
} as const satisfies Record<string, Attack>;

export type AttackName = keyof typeof ATTACKS;
