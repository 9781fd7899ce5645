import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { ownLines, podLines } from '../../../core/follow/pod-lines.ts';
import { ApiError, TransportError } from '../../../core/kube/errors.ts';
import type { KubeApi } from '../../../core/kube/types.ts';
import { eventLine } from '../../../core/pod-log/agent-events.ts';
import { followPodLog } from '../../../core/pod-log/follow.ts';
import { podLogLines } from '../../../core/pod-log/lines.ts';
import { type LinePiece, LogPosition } from '../../../core/pod-log/position.ts';
import { sessionText } from '../../../core/pod-log/session-text.ts';
import { type Clock, delay } from '../../../core/runtime.ts';
import { podOf } from '../../support/pod-of.ts';

const START = Date.UTC(2030, 0, 1);

/** Formats a time as the kubelet does: nanoseconds, with or without trailing zeros. */
const stamp = (us: number, isShort: boolean) => {
  const whole = new Date(START + Math.floor(us / 1000)).toISOString().replace('Z', String(us % 1000).padStart(3, '0'));
  return isShort ? `${whole.replace(/\.?0+$/, '')}Z` : `${whole}000Z`;
};
const lost = () => new TransportError('the connection was reset');
const refused = (code: number, kind?: string) =>
  new ApiError({ code, reason: 'induced', message: 'induced', ...(kind ? { details: { kind } } : {}) });

const POD = { namespace: 'default', name: 'pod', uid: 'pod-uid', hasRunner: true };

const bytesOf = (pieces: LinePiece[]) => pieces.map(({ bytes }) => bytes);

/** A clock whose time passes only in waiting, and then at once. */
function hasty(): Clock {
  let now = 0;
  return {
    now: () => START + now,
    monotonic: () => now,
    setTimer: (ms, fn) => {
      const timer = setImmediate(() => {
        now += ms;
        fn();
      });
      return () => clearImmediate(timer);
    },
  };
}

/** Answers one after the other: pieces, then an end or an error. Keeps what was asked for. */
function answers(...replies: { ms?: number; pieces?: string[]; error?: Error }[]) {
  const asked: { sinceTime?: string; timestamps?: boolean }[] = [];
  const clock = hasty();
  const podLog: KubeApi['podLog'] = async function* (_, options) {
    asked.push(options);
    const { ms, pieces = [], error } = replies.shift() ?? { error: refused(404, 'pods') };
    if (ms) await delay(clock, ms);
    for (const piece of pieces) yield Buffer.from(piece);
    if (error) throw error;
  };
  return { asked, clock, podLog, get: (async () => podOf('u', 1, 'pod-uid')) as KubeApi['get'] };
}

async function text(api: ReturnType<typeof answers>, options: { sinceTime?: string } = {}): Promise<string> {
  const pieces: Buffer[] = [];
  const { signal } = new AbortController();
  for await (const piece of followPodLog(api, api.clock, POD, { ...options, signal })) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

describe('the log of a pod that is followed', () => {
  const [a, b, c] = [5_000_100, 5_000_200, 7_000_000].map((us) => `${stamp(us, false)} line at ${us}\n`) as [
    string,
    string,
    string,
  ];

  test('is opened again after it ended and after a lost connection, from where it was, until the pod is gone', async () => {
    const api = answers(
      { error: refused(400) },
      { pieces: [a, b.slice(0, 40)], error: lost() },
      { error: lost() },
      { error: refused(500) },
      { pieces: [a, b] },
      { pieces: [a, b, c] },
      { pieces: [c] },
    );
    const whole = 'line at 5000100\nline at 5000200\nline at 7000000\n';
    assert.equal(await text(api, { sinceTime: '2030-01-01T00:00:05Z' }), whole);
    assert.deepEqual(
      api.asked.map(({ sinceTime }) => sinceTime?.slice(17)),
      ['05Z', '05Z', '04.000Z', '04.000Z', '04.000Z', '04.000Z', '06.000Z', '06.000Z'],
    );
  });

  test('gives a session’s text and its events whole, over what cuts the connection', async () => {
    const event = (us: number, seq: number) =>
      `${stamp(us, false)} ${eventLine({ seq, turn: 'x', at: '2030-01-01T00:00:00.000Z', event: us })}`;
    const [first, second, third] = [event(1_000_000, 1), event(2_000_000, 2), event(3_000_000, 3)] as [
      string,
      string,
      string,
    ];
    const session = { namespace: 'default', name: 'talks', uid: 'u' };
    const object = { metadata: session, spec: {}, status: { podName: 'pod', incarnation: 1 } };
    const api = () => ({
      ...answers(
        { pieces: [first, second.slice(0, 50)], error: lost() },
        { pieces: [first + second] },
        { pieces: [third] },
      ),
      list: async () => ({ items: [object], metadata: { resourceVersion: '1' } }) as never,
      watch: async function* () {
        yield { type: 'DELETED', object } as never;
      },
    });
    const { signal } = new AbortController();
    let read = '';
    for await (const piece of sessionText(api(), hasty(), session, { signal })) read += piece;
    const lines = [first, second, third].map((line) => line.slice(line.indexOf(' ') + 1));
    assert.equal(read, lines.join(''));
    const events: unknown[] = [];
    const states = (async function* () {
      yield { metadata: { ...session, resourceVersion: '1' }, phase: 'Ready' as const, podName: 'pod', incarnation: 1 };
    })();
    const options = { clock: hasty(), namespace: 'default', from: { incarnation: 1, seq: 1 }, sinceTime: '', signal };
    for await (const line of podLines(ownLines(api(), hasty()), states, options)) {
      if (line.kind === 'event') events.push(line.event.event);
    }
    assert.deepEqual(events, [2_000_000, 3_000_000]);
  });

  test('is waited for while the kubelet does not know the pod, or its node has not come back', async () => {
    const api = answers(
      { error: refused(404, 'pods/log') },
      { error: refused(400) },
      { pieces: [a] },
      ...Array.from({ length: 100 }, () => ({ error: refused(404, 'pods/log') })),
      { error: refused(404, 'nodes') },
      { pieces: [b] },
    );
    assert.equal(await text(api), 'line at 5000100\nline at 5000200\n');
  });

  test('goes on while the API server and the kubelet start anew', async () => {
    const api = answers(
      { pieces: [a], error: lost() },
      ...Array.from({ length: 15 }, () => ({ error: lost() })),
      ...[401, 403, 429, 503, 500].map((code) => ({ error: refused(code) })),
      { pieces: [b] },
    );
    assert.equal(await text(api), 'line at 5000100\nline at 5000200\n');
  });

  test('goes on however often a load balancer cuts it, because nothing is printed', async () => {
    const api = answers(...Array.from({ length: 20 }, () => ({ ms: 20_000, error: lost() })), { pieces: [a] });
    assert.equal(await text(api), 'line at 5000100\n');
  });

  test('is read again where the kubelet has no watch to spare for it', async () => {
    const excuse = 'failed to create fsnotify watcher: too many open files';
    const api = answers({ pieces: [a + excuse] }, { pieces: [a + b, excuse] }, { pieces: [b + c, excuse] });
    assert.equal(await text(api), 'line at 5000100\nline at 5000200\nline at 7000000\n');
  });

  test('as it is by now has no line that is still being written', async () => {
    const { signal } = new AbortController();
    const read = async (follow: boolean) => {
      const api = answers({ pieces: [a, b.slice(0, -5)] });
      const lines: (string | undefined)[] = [];
      for await (const more of podLogLines(api, api.clock, POD, { follow, signal })) {
        lines.push(...more.map(({ text }) => text));
      }
      return lines;
    };
    assert.deepEqual(await read(false), ['line at 5000100']);
    assert.deepEqual(await read(true), ['line at 5000100', 'line at 500']);
  });

  test('is given up when the cluster stays away, or refuses', async () => {
    const api = answers({ pieces: [a] }, ...Array.from({ length: 100 }, () => ({ error: lost() })));
    await assert.rejects(text(api), TransportError);
    assert.ok(api.asked.length > 10 && api.asked.length < 40, `${api.asked.length} requests`);
    for (const code of [401, 403]) await assert.rejects(text(answers({ error: refused(code) })), { code });
  });

  test('comes once and whole wherever it is cut, also with lines of one time and in disorder', () => {
    const line = fc.record({ wait: fc.integer({ min: -300, max: 900_000 }), text: fc.string({ unit: 'binary' }) });
    const cuts = fc.array(fc.nat(10_000), { maxLength: 6 });
    const input = fc.record({ lines: fc.array(line, { maxLength: 12 }), cuts, size: fc.integer({ min: 1, max: 60 }) });
    fc.assert(
      fc.property(input, fc.boolean(), ({ lines, cuts, size }, isShort) => {
        let us = 10_000_000;
        const log = lines.map(({ wait, text }) => {
          us += wait;
          return { us, text: `${text.replaceAll('\n', '')}\n` };
        });
        const position = new LogPosition();
        const read: Buffer[] = [];
        const stream = (since: string | undefined) => {
          const from = since === undefined ? 0 : (Date.parse(since) - START) * 1000;
          const entries = log
            .filter(({ us }) => us >= from)
            .map((entry) => `${stamp(entry.us, isShort)} ${entry.text}`);
          return Buffer.from(entries.join(''));
        };
        const all = stream(undefined).length;
        for (const cut of [...cuts.map((cut) => cut % (all + 1)).sort((x, y) => x - y), all]) {
          const since = position.reopen();
          const bytes = stream(since);
          // The line is the same one, though the log begins later.
          const piece = bytes.subarray(0, Math.max(0, bytes.length - (all - cut)));
          for (let at = 0; at < piece.length; at += size)
            read.push(...bytesOf(position.push(piece.subarray(at, at + size))));
        }
        assert.equal(Buffer.concat(read).toString(), log.map(({ text }) => text).join(''));
      }),
    );
  });

  test('lines that were rotated away meanwhile are left out, and so are messages of the kubelet', () => {
    const position = new LogPosition();
    const read = [...bytesOf(position.push(Buffer.from(`failed to watch a file\n${a}${b}`)))];
    position.reopen();
    read.push(...bytesOf(position.push(Buffer.from(`unable to retrieve container logs for x\nfailed\n${c}`))));
    assert.equal(Buffer.concat(read).toString(), 'line at 5000100\nline at 5000200\nline at 7000000\n');
  });
});
