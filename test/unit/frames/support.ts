/** Shared by the tests of the pod boundary: a pod, its keys, messages of every kind, and ways to spoil a stream. */
import fc from 'fast-check';
import type { Channel } from '../../../core/frames/encode.ts';
import type { Frame } from '../../../core/frames/messages.ts';
import { frameKeys } from '../../../core/frames/seal.ts';
import { FrameSender, type SenderOptions, type SentKind } from '../../../core/frames/sender.ts';
import { systemRandom } from '../../../core/system.ts';

export const boot = 'b'.repeat(32);
export const address = { session: '8f2d2c1e-0000-4000-8000-000000000001', incarnation: 3, boot };
export const master = Buffer.alloc(32, 7);
export const keys = frameKeys(master, { session: address.session, podUID: 'pod-1', boot });
export const up: Channel = { ...address, key: keys.up, random: systemRandom };
export const down: Channel = { ...address, key: keys.down, random: systemRandom };

export type Sent = { kind: SentKind; message: object; binary: Buffer };

const turn = 'turn-1';
const at = '2026-01-02T03:04:05.678Z';
const hex = 'a'.repeat(64);

/** Messages of every kind; some need several parts. */
export const sent: fc.Arbitrary<Sent> = fc.oneof(
  fc.constant<Sent>({ kind: 'started', message: { turn, attempt: 1, at, pid: 12 }, binary: Buffer.alloc(0) }),
  fc.nat(9).map<Sent>((n) => ({
    kind: 'pong',
    message: { n, incarnation: 3, idleMs: 5, suspended: false },
    binary: Buffer.alloc(0),
  })),
  fc.string({ unit: 'binary', maxLength: 40 }).map<Sent>((text) => ({
    kind: 'log',
    message: { turn, attempt: 1, text, bytes: text.length, truncated: false },
    binary: Buffer.alloc(0),
  })),
  fc.record({ byte: fc.nat(255), size: fc.constantFrom(1, 28, 9_000, 9_100, 20_000, 40_000) }).map<Sent>((b) => ({
    kind: 'state',
    message: { turn, digest: hex, keyId: 'k1', bytes: b.size },
    binary: Buffer.alloc(b.size, b.byte),
  })),
  fc
    .record({ name: fc.constantFrom('a', 'sub/b c', 'é\n'), size: fc.constantFrom(0, 1, 20_000) })
    .map<Sent>((file) => ({
      kind: 'artifacts',
      message: {
        turn,
        attempt: 1,
        files: [{ name: file.name, bytes: file.size, digest: hex, executable: true }],
        leftOut: { count: 2, entries: [{ name: 'link', reason: 'Symlink' }] },
      },
      binary: Buffer.alloc(file.size, 1),
    })),
  fc.jsonValue({ maxDepth: 2 }).map<Sent>((value) => ({
    kind: 'event',
    message: { turn, attempt: 1, at, event: JSON.parse(JSON.stringify(value)) },
    binary: Buffer.alloc(0),
  })),
  fc
    .record({ prompt: fc.string({ minLength: 1, maxLength: 40 }), payload: fc.jsonValue({ maxDepth: 2 }) })
    .map<Sent>((asks) => ({
      kind: 'approval',
      message: {
        turn,
        attempt: 1,
        id: '0123456789abcdef',
        prompt: asks.prompt,
        payload: JSON.parse(JSON.stringify(asks.payload)),
        process: 'Alive',
        at,
        startedAt: at,
        ranMs: 12,
        state: { seq: 4, digest: hex },
        logSeq: 3,
      },
      binary: Buffer.alloc(0),
    })),
  fc.jsonValue({ maxDepth: 2 }).map<Sent>((value) => {
    const output = JSON.parse(JSON.stringify(value));
    const message = {
      turn,
      attempt: 1,
      outcome: 'Succeeded',
      output,
      startedAt: at,
      finishedAt: at,
      state: 'Unchanged',
      leftRunning: [],
    };
    return { kind: 'result', message, binary: Buffer.alloc(0) };
  }),
);

/** A sender whose text is collected, one entry for each part. */
export function collecting(options: Partial<SenderOptions> = {}): { sender: FrameSender; texts: string[] } {
  const texts: string[] = [];
  const sender = new FrameSender({
    ...up,
    write: (text) => {
      texts.push(text);
      return true;
    },
    ...options,
  });
  return { sender, texts };
}

export function send(sender: FrameSender, { kind, message, binary }: Sent): number {
  return sender.send(kind, message as never, binary);
}

/** A frame as plain values, for comparing. */
export function plain(frame: Frame): { seq: number } & Omit<Sent, 'binary'> & { binary: string } {
  return {
    seq: frame.seq,
    kind: frame.kind as SentKind,
    message: frame.message,
    binary: frame.binary.toString('base64'),
  };
}

export function expected(all: Sent[]): ReturnType<typeof plain>[] {
  return all.map((one, index) => ({
    seq: index + 1,
    kind: one.kind,
    message: one.message,
    binary: one.binary.toString('base64'),
  }));
}

const fakeHeader = JSON.stringify({
  v: 1,
  sid: address.session,
  inc: 3,
  boot,
  seq: 1,
  kind: 'result',
  part: 1,
  parts: 1,
});

/** Bytes between frames: arbitrary ones, and text that resembles markers; mostly without a line feed at its end. */
export const junk: fc.Arbitrary<Buffer> = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes)),
      fc
        .constantFrom(
          '\n',
          'a print of a library\n',
          '<<<BERTH_',
          '<<<BERTH_START ',
          '<<<BERTH_START {"v":1',
          '<<<BERTH_START {}>>>',
          '<<<BERTH_START {}>>>\n',
          `<<<BERTH_START ${fakeHeader}>>>`,
          `<<<BERTH_START ${fakeHeader}>>>\n`,
          `<<<BERTH_START ${fakeHeader}>>>\nQUJD\n`,
          `<<<BERTH_START ${fakeHeader}>>>\nQUJD\n<<<BERTH_END 1/1>>>\n`,
          `<<<BERTH_START ${fakeHeader}>>>\n${'A'.repeat(12_288)}`,
          '<<<BERTH_END 1/1>>>\n',
          '>>>\n',
          'QUJD\n',
          'x'.repeat(20_000),
          `${'<<<BERTH_START '.repeat(2_000)}`,
        )
        .map((text) => Buffer.from(text)),
    ),
    { maxLength: 4 },
  )
  .map((pieces) => Buffer.concat(pieces));

/** Cuts a buffer at the given places (fractions of its length). */
export function split(whole: Buffer, at: number[]): Buffer[] {
  const cuts = [...at.map((fraction) => Math.floor(fraction * whole.length)), 0, whole.length].sort((a, b) => a - b);
  return cuts.slice(1).map((end, index) => whole.subarray(cuts[index], end));
}

export const cutPoints = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 40 });

/** Damage to one piece of a stream on its way. */
export type Fault = 'None' | 'Lost' | 'Repeated' | 'Later' | 'TornHead' | 'TornTail' | 'Flipped' | 'Renumbered';
export const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Fault>('None') },
  {
    weight: 4,
    arbitrary: fc.constantFrom<Fault>('Lost', 'Repeated', 'Later', 'TornHead', 'TornTail', 'Flipped', 'Renumbered'),
  },
);

/** The pieces as they arrive after `faults` (used in turn), in their order. */
export function spoil(texts: string[], faults: Fault[]): string[] {
  const arrived: string[] = [];
  let later: string[] = [];
  for (const [index, text] of texts.entries()) {
    const now = faults.length ? (faults[index % faults.length] as Fault) : 'None';
    const middle = Math.floor(text.length / 2);
    if (now === 'Later') {
      later.push(text);
      continue;
    }
    if (now === 'None') arrived.push(text);
    if (now === 'Repeated') arrived.push(text, text);
    if (now === 'TornHead') arrived.push(text.slice(middle));
    if (now === 'TornTail') arrived.push(text.slice(0, middle));
    if (now === 'Flipped') {
      const body = text.search(/[ \n][A-Za-z0-9+/=]+\n/) + 5;
      arrived.push(text.slice(0, body) + (text[body] === 'A' ? 'B' : 'A') + text.slice(body + 1));
    }
    if (now === 'Renumbered') {
      arrived.push(text.replaceAll(/"(seq|n)":(\d+)/g, (_, name, n) => `"${name}":${Number(n) + 1}`));
    }
    arrived.push(...later);
    later = [];
  }
  return [...arrived, ...later];
}
