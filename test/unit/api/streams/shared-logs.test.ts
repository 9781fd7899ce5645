import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { SharedLogs } from '../../../../api/streams/shared-logs.ts';
import type { EventPlace } from '../../../../core/follow/cursor.ts';
import { type PodLine, podLines, type ReadLines } from '../../../../core/follow/pod-lines.ts';
import { ApiError, TransportError } from '../../../../core/kube/errors.ts';
import type { KubeApi } from '../../../../core/kube/types.ts';
import { eventLine } from '../../../../core/pod-log/agent-events.ts';
import type { LogApi } from '../../../../core/pod-log/open.ts';
import { podOf } from '../../../support/pod-of.ts';
import { settled, VirtualClock } from '../../../support/virtual-clock.ts';

const START = Date.UTC(2030, 0, 1);
/** Room for some eight lines. */
const BYTES = 2_000;
const AT = '2030-01-01T00:00:00.000Z';

const stamp = (us: number) =>
  new Date(START + Math.floor(us / 1000)).toISOString().replace('Z', `${String(us % 1000).padStart(3, '0')}000Z`);

const noPod = () => new ApiError({ code: 404, reason: 'NotFound', message: 'gone', details: { kind: 'pods' } });

interface Line {
  us: number;
  text: string;
}

/** Logs of pods as the API server serves them: each line once it is written, until the log is cut or the pod is gone. */
class Pods {
  readonly clock = new VirtualClock(START);
  /** Requests by the name of the pod. */
  readonly asked: string[] = [];
  /** Follows that are open at present, and the most that were at once. */
  open = 0;
  most = 0;
  /** True while the API server cannot be reached. */
  isAway = false;
  readonly #lines = new Map<string, Line[]>();
  /** Number of the first line in each log's present file. */
  readonly #rotated = new Map<string, number>();
  #wake = Promise.withResolvers<void>();
  #cuts = 0;

  create(pod: string): void {
    if (!this.#lines.has(pod)) this.#lines.set(pod, []);
  }

  write(pod: string, us: number, text: string): void {
    this.#lines.get(pod)?.push({ us, text });
    this.#changed();
  }

  rotate(pod: string): void {
    this.#rotated.set(pod, this.#lines.get(pod)?.length ?? 0);
  }

  remove(pod: string): void {
    this.#lines.delete(pod);
    this.cut();
  }

  /** Cuts every stream. */
  cut(): void {
    this.#cuts += 1;
    this.#changed();
  }

  readonly api: LogApi = {
    get: (async (_resource, { name }) => {
      if (!this.#lines.has(name)) throw noPod();
      return podOf('u', 1, name);
    }) as KubeApi['get'],
    podLog: ({ name }, options) => this.#read(name, options),
  };

  #changed(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  async *#read(
    pod: string,
    { follow, sinceTime, signal }: { follow?: boolean; sinceTime?: string; signal?: AbortSignal },
  ): AsyncGenerator<Buffer> {
    this.asked.push(`${pod}${follow ? '' : ' so far'}`);
    const lost = () => new TransportError('the connection was reset');
    if (this.isAway) throw lost();
    const lines = this.#lines.get(pod);
    if (!lines) throw noPod();
    const cuts = this.#cuts;
    const end = follow ? Number.POSITIVE_INFINITY : lines.length;
    const since = sinceTime === undefined ? 0 : (Date.parse(sinceTime) - START) * 1000;
    if (follow) this.most = Math.max(this.most, ++this.open);
    try {
      for (let at = this.#rotated.get(pod) ?? 0; ; ) {
        signal?.throwIfAborted();
        if (cuts !== this.#cuts) throw lost();
        const line = at < end ? lines[at] : undefined;
        if (line) {
          at += 1;
          // In two pieces, so that lines are cut.
          const bytes = Buffer.from(`${stamp(line.us)} ${line.text}`);
          if (line.us >= since) for (const piece of [bytes.subarray(0, 40), bytes.subarray(40)]) yield piece;
        } else if (follow) {
          const aborted = new Promise<void>((resolve) =>
            signal?.addEventListener('abort', () => resolve(), { once: true }),
          );
          await Promise.race([this.#wake.promise, aborted]);
        } else return;
      }
    } finally {
      if (follow) this.open -= 1;
    }
  }
}

interface Logs {
  read: ReadLines;
  stop(): Promise<void>;
}

/** A follower of the pod, which reads when it may. */
class Reader {
  readonly lines: PodLine[] = [];
  /** How many lines it may read. */
  #left = 0;
  #more = () => {};
  hasEnded = false;
  problem: unknown;
  readonly #stop = new AbortController();

  constructor(logs: Logs, start: EventPlace | string, pod = 'pod') {
    void this.#read(logs, start, pod)
      .catch((error) => {
        this.problem = error;
      })
      .finally(() => {
        this.hasEnded = true;
      });
  }

  /** Lets it read so many lines more. */
  async read(count = Number.POSITIVE_INFINITY): Promise<void> {
    this.#left += count;
    this.#more();
    await settled();
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the reader has gone'));
    await settled();
  }

  get events(): number[] {
    return this.lines.flatMap((line) => (line.kind === 'event' ? [line.event.seq] : []));
  }

  async #read(logs: Logs, start: EventPlace | string, podName: string): Promise<void> {
    const states = (async function* () {
      const metadata = { name: 's', uid: 'u', resourceVersion: '1' };
      yield { metadata, phase: 'Ready' as const, podName, incarnation: 1 };
    })();
    const from = typeof start === 'string' ? { sinceTime: start } : { from: start, sinceTime: '' };
    // All lines were printed before it came.
    const clock = new VirtualClock(START + 86_400_000);
    const options = { clock, namespace: 'ns', ...from, signal: this.#stop.signal };
    for await (const line of podLines(logs.read, states, options)) {
      this.lines.push(line);
      this.#left -= 1;
      while (this.#left <= 0) {
        await new Promise<void>((resolve) => {
          this.#more = resolve;
        });
      }
    }
  }
}

const all = { incarnation: 1, seq: 0 };
const event = (seq: number) => eventLine({ seq, turn: 'a', at: AT, event: seq });
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

function sharedLogs({ api, clock }: Pods, most: number, podLog = api.podLog): Logs {
  const logs = new SharedLogs({ clock, most, bytes: BYTES });
  return { read: logs.readFrom({ get: api.get, podLog }), stop: () => logs.stop() };
}

function setUp({ most = 10 } = {}) {
  const pods = new Pods();
  pods.create('pod');
  const logs = sharedLogs(pods, most);
  let us = 0;
  let seq = 0;
  /** Writes so many events, a millisecond apart. */
  const tell = async (count: number, pod = 'pod') => {
    for (let i = 0; i < count; i++) {
      us += 1_000;
      pods.write(pod, us, event(++seq));
    }
    await settled();
  };
  return { pods, logs, tell };
}

describe('the log of a pod that many follow', () => {
  test('is read by one stream, from which also those get all events who come later, once each', async () => {
    const { pods, logs, tell } = setUp();
    const readers = Array.from({ length: 20 }, () => new Reader(logs, all));
    for (const reader of readers) await reader.read();
    await tell(4);
    readers.push(new Reader(logs, all), new Reader(logs, { incarnation: 1, seq: 2 }));
    for (const reader of readers.slice(-2)) await reader.read();
    await tell(40);
    for (const { events } of readers.slice(0, -1)) assert.deepEqual(events, numbers(1, 44));
    assert.deepEqual(readers.at(-1)?.events, numbers(3, 44));
    assert.deepEqual(pods.asked, ['pod']);
    await logs.stop();
    assert.equal(pods.open, 0);
  });

  test('is read once more, up to what is kept, by one that comes for older lines or reads slowly', async () => {
    const { pods, logs, tell } = setUp();
    const [quick, slow] = [new Reader(logs, all), new Reader(logs, all)];
    await quick.read();
    await slow.read(2);
    await tell(50);
    assert.deepEqual([quick.events, slow.events], [numbers(1, 50), [1, 2]], 'the slow one holds up no other');
    const late = new Reader(logs, { incarnation: 1, seq: 20 });
    await late.read();
    await slow.read();
    const resumed = new Reader(logs, { incarnation: 1, seq: 48 });
    await resumed.read();
    assert.deepEqual([slow.events, late.events], [numbers(1, 50), numbers(21, 50)]);
    assert.deepEqual(resumed.events, [49, 50]);
    assert.deepEqual(pods.asked, ['pod', 'pod so far', 'pod so far']);
    await tell(30);
    for (const { events } of [quick, slow, late]) assert.equal(events.at(-1), 80);
    assert.deepEqual([slow.events, pods.asked.length], [numbers(1, 80), 3]);
    await logs.stop();
  });

  test('is kept only as far as there is memory, which an event of many small parts takes more of than its text', async () => {
    for (const [value, isKept] of [
      ['x'.repeat(400), true],
      ['\u4e00'.repeat(400), false],
      [Array.from({ length: 40 }, () => ({})), false],
      [Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, i])), false],
    ] as const) {
      const { pods, logs } = setUp();
      const first = new Reader(logs, all);
      await first.read();
      for (const seq of [1, 2]) {
        pods.write('pod', seq * 1_000, eventLine({ seq, turn: 'a', at: AT, event: value }));
        await settled();
      }
      const late = new Reader(logs, all);
      await late.read();
      const shown = JSON.stringify(value).slice(0, 20);
      assert.deepEqual([first.events, late.events], [numbers(1, 2), numbers(1, 2)], shown);
      assert.deepEqual(pods.asked.slice(1), isKept ? [] : ['pod so far'], shown);
      await logs.stop();
    }
  });

  test('gives who comes for the present what is after its time', async () => {
    const { pods, logs, tell } = setUp();
    const first = new Reader(logs, all);
    await first.read();
    await tell(50);
    const [kept, older] = [new Reader(logs, stamp(48_000)), new Reader(logs, stamp(10_000))];
    await kept.read();
    await older.read();
    assert.deepEqual([kept.events, pods.asked[1]], [numbers(48, 50), 'pod so far']);
    assert.deepEqual([older.events, pods.asked.length], [numbers(10, 50), 2]);
    await logs.stop();
  });

  test('says how many events are lost when it was rotated, and still has what is kept', async () => {
    const { pods, logs, tell } = setUp();
    const first = new Reader(logs, all);
    await first.read();
    await tell(48);
    pods.rotate('pod');
    await tell(2);
    const late = new Reader(logs, all);
    await late.read();
    const [lost, ...rest] = late.lines;
    assert.ok(lost?.kind === 'dropped' && lost.events > 30 && lost.events < 48);
    assert.equal(rest.length, 50 - lost.events);
    await tell(1);
    assert.deepEqual(late.events, numbers(lost.events + 1, 51));
    await logs.stop();
  });

  test('is told on after a line, of those that are kept and of others', async () => {
    const { pods, logs } = setUp();
    const print = (from: number, to: number) => {
      for (const i of numbers(from, to)) pods.write('pod', i * 1_000, `line ${i}\n`);
      return settled();
    };
    const texts = ({ lines }: Reader) => lines.map((line) => (line.kind === 'text' ? line.text : line.kind));
    await print(1, 3);
    const first = new Reader(logs, all);
    await first.read();
    await first.close();
    await print(4, 5);
    const place = first.lines.at(-1)?.place as EventPlace;
    const again = new Reader(logs, place);
    await again.read();
    assert.deepEqual(texts(again), ['line 4', 'line 5']);
    await again.close();
    await print(6, 60);
    const late = new Reader(logs, place);
    await late.read();
    assert.deepEqual(
      texts(late),
      numbers(4, 60).map((i) => `line ${i}`),
    );
    assert.ok(pods.asked.includes('pod so far'), 'some are not kept any more');
    await late.close();
    await logs.stop();
  });

  test('is read for a minute after the last follower has gone, and by as many streams as there may be followers', async () => {
    const { pods, logs, tell } = setUp({ most: 3 });
    const follow = async (pod: string) => {
      pods.create(pod);
      const reader = new Reader(logs, all, pod);
      await reader.read();
      return reader;
    };
    await (await follow('a')).close();
    await pods.clock.advance(50_000);
    const again = await follow('a');
    await pods.clock.advance(50_000);
    await tell(1, 'a');
    assert.deepEqual([again.events, pods.asked], [[1], ['a']]);
    await again.close();
    const [b, c] = [await follow('b'), await follow('c')];
    await c.close();
    await b.close();
    await (await follow('d')).close();
    assert.equal(pods.open, 3);
    await follow('a');
    await follow('b');
    assert.deepEqual(pods.asked, ['a', 'b', 'c', 'd', 'a'], 'a and c ended, which nobody had followed for longest');
    await pods.clock.advance(61_000);
    assert.equal(pods.open, 2, 'those of b and a are followed');
    await logs.stop();
    assert.equal(pods.open, 0);
  });

  test('goes on for all when the connection is cut, ends for all with the pod, and fails for all with the cluster', async () => {
    const { pods, logs, tell } = setUp();
    const readers = [new Reader(logs, all), new Reader(logs, all)];
    for (const reader of readers) await reader.read();
    await tell(3);
    pods.cut();
    await tell(3);
    await pods.clock.advance(1_000);
    for (const { events } of readers) assert.deepEqual(events, numbers(1, 6));
    pods.remove('pod');
    await pods.clock.advance(3_000);
    for (const { hasEnded, problem } of readers) assert.deepEqual([hasEnded, problem], [true, undefined]);
    pods.create('pod');
    const last = [new Reader(logs, all), new Reader(logs, all)];
    for (const reader of last) await reader.read();
    pods.isAway = true;
    pods.cut();
    await pods.clock.advance(90_000);
    for (const { problem } of last) assert.ok(problem instanceof TransportError);
    await logs.stop();
  });

  test('is asked for again by one that comes while an older request learns that there is no pod yet', async () => {
    const { pods, tell } = setUp();
    pods.remove('pod');
    const held = Promise.withResolvers<void>();
    const podLog: KubeApi['podLog'] = async function* (ref, options) {
      const isFirst = pods.asked.length === 0;
      const answer = pods.api.podLog(ref, options)[Symbol.asyncIterator]();
      const first = await answer.next().catch((error: unknown) => error as Error);
      if (isFirst) await held.promise;
      if (first instanceof Error) throw first;
      if (!first.done) yield first.value;
      for (let next = await answer.next(); !next.done; next = await answer.next()) yield next.value;
    };
    const logs = sharedLogs(pods, 10, podLog);
    const early = new Reader(logs, all);
    await early.read();
    pods.create('pod');
    const later = new Reader(logs, all);
    await later.read();
    held.resolve();
    await tell(2);
    assert.ok(early.hasEnded, 'it asks again when its session changes');
    assert.deepEqual(later.events, [1, 2]);
    await logs.stop();
  });

  test('brings everyone all lines once and in order, whatever is cut, written or read when', async () => {
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ write: fc.array(fc.integer({ min: -300, max: 9_000 }), { maxLength: 12 }) }),
      },
      { weight: 2, arbitrary: fc.record({ join: fc.nat(60), slow: fc.boolean() }) },
      { weight: 1, arbitrary: fc.record({ since: fc.nat(100), slow: fc.boolean() }) },
      { weight: 3, arbitrary: fc.record({ read: fc.nat(9), count: fc.nat(12) }) },
      { weight: 1, arbitrary: fc.constant({ cut: true }) },
      { weight: 1, arbitrary: fc.record({ leave: fc.nat(9) }) },
      { weight: 1, arbitrary: fc.record({ pass: fc.nat(70_000) }) },
    );
    const run = async (steps: (typeof step extends fc.Arbitrary<infer S> ? S : never)[]) => {
      const { pods, logs } = setUp();
      const written: Line[] = [];
      const readers: { reader: Reader; isWanted: (line: Line) => boolean; isOpen: boolean }[] = [];
      let us = 5_000_000;
      let seq = 0;
      const join = async (start: EventPlace | string, slow: boolean, isWanted: (line: Line) => boolean) => {
        const reader = new Reader(logs, start);
        readers.push({ reader, isWanted, isOpen: true });
        await reader.read(slow ? 1 : undefined);
      };
      for (const step of steps) {
        if ('write' in step) {
          for (const wait of step.write) {
            us += wait;
            // Two lines of text come between the events.
            const text = written.length % 3 === 0 ? `${++seq}` : `line ${written.length}`;
            written.push({ us, text });
            pods.write('pod', us, text.startsWith('line') ? `${text}\n` : event(seq));
          }
          await settled();
        } else if ('join' in step) {
          const after = Math.min(step.join, seq);
          const last = written.findIndex(({ text }) => text === `${after}`);
          await join({ incarnation: 1, seq: after }, step.slow, (line) => written.indexOf(line) > last);
        } else if ('since' in step) {
          const since = written[step.since]?.us ?? us;
          await join(stamp(since), step.slow, (line) => line.us >= since);
        } else if ('read' in step) await readers[step.read]?.reader.read(step.count);
        else if ('cut' in step) pods.cut();
        else if ('leave' in step) {
          const found = readers[step.leave];
          if (found) found.isOpen = false;
          await found?.reader.close();
        } else await pods.clock.advance(step.pass);
      }
      await pods.clock.advance(5_000);
      for (const { reader } of readers) await reader.read();
      await pods.clock.advance(5_000);
      for (const { reader, isWanted, isOpen } of readers) {
        if (!isOpen) continue;
        const first = written.findIndex(isWanted);
        const wanted = first < 0 ? [] : written.slice(first).map(({ text }) => text);
        const names = reader.lines.map((line) => {
          assert.notEqual(line.kind, 'dropped');
          return line.kind === 'text' ? line.text : String(line.place.seq);
        });
        assert.deepEqual(names, wanted);
        assert.equal(reader.hasEnded, false);
      }
      assert.ok(pods.most <= 1, 'one stream at a time');
      await logs.stop();
    };
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40, size: 'max' }), run), {
      numRuns: 300,
    });
  });
});
