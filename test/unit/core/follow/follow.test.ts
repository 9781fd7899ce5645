import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  type EventPlace,
  formatSessionCursor,
  formatStateCursor,
  parseSessionCursor,
  parseStateCursor,
  type SessionCursor,
} from '../../../../core/follow/cursor.ts';
import { merged } from '../../../../core/follow/merged.ts';
import { ownLines, type PodLine, podLines } from '../../../../core/follow/pod-lines.ts';
import { type Placed, sessionEvents } from '../../../../core/follow/session-events.ts';
import { turnEvents } from '../../../../core/follow/state-events.ts';
import { States } from '../../../../core/follow/states.ts';
import { viewTurn } from '../../../../core/follow/views.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import type { KubeApi } from '../../../../core/kube/types.ts';
import { eventLine } from '../../../../core/pod-log/agent-events.ts';
import type { LogLine } from '../../../../core/pod-log/lines.ts';
import type { StoredTurn } from '../../../../core/resources/kinds.ts';
import { silentLogger, systemRandom } from '../../../../core/system.ts';
import { podOf } from '../../../support/pod-of.ts';
import { settled, VirtualClock } from '../../../support/virtual-clock.ts';

const aTurn = (name: string, resourceVersion: string, status: object = {}): StoredTurn =>
  ({
    metadata: { namespace: 'ns', name, uid: name, resourceVersion },
    spec: { session: 'notes' },
    status,
  }) as unknown as StoredTurn;

describe('a place in a stream', () => {
  test('is read as it was written, and nothing else is', () => {
    const states = { sessions: '12', turns: '0' };
    assert.equal(formatStateCursor(states), '12.0');
    assert.deepEqual(parseStateCursor('12.0'), states);
    const ofAny = { states, place: { incarnation: 3, seq: 17 } };
    for (const [cursor, text] of [
      [ofAny, '12.0.3.17'],
      [{ ...ofAny, session: '7f0c6f4e' }, '12.0.3.17.7f0c6f4e'],
      [
        { states, place: { ...ofAny.place, line: { newest: 1767225601000000000n, line: 2 } }, session: '7f0c6f4e' },
        '12.0.3.17.7f0c6f4e.1767225601000000000.2',
      ],
    ] as const) {
      assert.equal(formatSessionCursor(cursor), text);
      assert.deepEqual(parseSessionCursor(text), cursor);
    }
    for (const text of [
      '',
      '3.17',
      '1.2.3',
      '1.2.3.4.',
      '1.2.3.4.7f0c6f4e0',
      '01.2.3.4',
      '-1.2.3.4',
      '1.2.3.4 ',
      '1.2.3.1e3',
      `${9e19}.0.0.0`,
    ]) {
      assert.equal(parseSessionCursor(text), undefined, text);
    }
  });
});

test('a place has fields of a newer version left out', () => {
  const [known, newer] = ['12.0.3.17.7f0c6f4e.1767225601000000000.2', '12.0.3.17.7f0c6f4e.1767225601000000000.2.new.7'];
  assert.deepEqual(parseSessionCursor(newer), parseSessionCursor(known));
  assert.deepEqual(parseSessionCursor('12.0.3.17.7f0c6f4e.x'), parseSessionCursor('12.0.3.17.7f0c6f4e'));
  assert.equal(parseStateCursor('12.0.3.17'), undefined, 'a place of a session is none of its namespace');
});

describe('the state of a turn', () => {
  const running = { phase: 'Running', index: 1, usage: { wall: 1 } };
  const view = (status: object) => viewTurn(aTurn('a', '1', status));
  const types = (status: object, old?: object) => turnEvents(view(status), old && view(old)).map(({ type }) => type);

  test('is told with what has changed of it since', () => {
    assert.deepEqual(types(running), ['turn', 'usage']);
    assert.deepEqual(types(running, running), []);
    assert.deepEqual(types({ ...running, usage: { wall: 2 } }, running), ['usage']);
    const approval = { id: 'r', prompt: 'May I?', since: 's', process: 'Alive', incarnation: 1, seq: 1, ranMs: 1 };
    const asks = { ...running, phase: 'AwaitingApproval', approval };
    assert.deepEqual(types(asks, running), ['turn', 'approval']);
    const decided = { decision: 'Deny', approval: 'x', at: 't' };
    assert.deepEqual(types({ ...asks, approval: { ...approval, decided } }, asks), ['approval']);
  });

  test('has the payload of a question while it waits for a decision, and the id that a decision names', () => {
    const approval = { id: 'r', prompt: 'May I?', payload: { cost: 3 }, since: 's', process: 'Alive', incarnation: 1 };
    const asks = { ...running, phase: 'AwaitingApproval', approval: { ...approval, seq: 1, ranMs: 1 } };
    const decided = { ...asks.approval, decided: { decision: 'Deny', approval: 'x', at: 't', response: 'long' } };
    const dataOf = (status: object) => {
      const event = turnEvents(view(status)).find(({ type }) => type === 'approval');
      return JSON.parse(JSON.stringify(event?.data));
    };
    const question = { session: 'notes', turn: 'a', requestId: 'r', prompt: 'May I?', since: 's' };
    assert.deepEqual(dataOf(asks), { ...question, payload: { cost: 3 } });
    assert.deepEqual(dataOf({ ...asks, phase: 'Running', approval: decided }), {
      ...question,
      decided: { decision: 'Deny', at: 't' },
    });
    // The end of the wait without a decision is told by the turn alone.
    assert.deepEqual(types({ ...asks, phase: 'Failed' }, asks), ['turn']);
  });

  test('says why it waits, and no longer why it waited', () => {
    const conditions = [{ type: 'Running', status: 'False', reason: 'AtCapacity', message: 'full' }];
    assert.equal(view({ phase: 'Queued', conditions }).reason, 'AtCapacity');
    assert.equal(view({ phase: 'Succeeded', conditions }).reason, undefined);
  });
});

describe('the lines of a session’s pods', () => {
  const event = (seq: number) => eventLine({ seq, turn: 'a', at: '2026-01-01T00:00:00.000Z', event: seq });

  /** What is told of pods with these logs, from a place on. */
  async function told(pods: string[], from?: { incarnation: number; seq: number }): Promise<string[]> {
    const logs = pods.map((text) => text.replace(/^/gm, '2026-01-01T00:00:00.000000001Z '));
    const api = {
      get: async (_: unknown, { name }: { name: string }) => podOf('u', Number(name) + 1, `pod-${name}`),
      podLog: async function* ({ name }: { name: string }) {
        const text = logs[Number(name)];
        logs[Number(name)] = '';
        if (!text) throw new ApiError({ code: 404, reason: 'NotFound', message: 'gone', details: { kind: 'pods' } });
        yield Buffer.from(text);
      },
    } as unknown as KubeApi;
    const states = (async function* () {
      for (const i of pods.keys()) {
        const metadata = { name: 's', uid: 'u', resourceVersion: String(i) };
        yield { metadata, phase: 'Ready' as const, podName: String(i), incarnation: i + 1 };
      }
    })();
    const clock = new VirtualClock();
    const lines: PodLine[] = [];
    const options = { clock, namespace: 'ns', from, sinceTime: '', signal: new AbortController().signal };
    const reading = (async () => {
      for await (const line of podLines(ownLines(api, clock), states, options)) lines.push(line);
    })();
    for (let i = 0; i < 20; i++) await clock.advance(1_000);
    await reading;
    return lines.map((line) => {
      const what = {
        event: () => 'event',
        dropped: () => `${line.kind === 'dropped' && line.events} dropped`,
        text: () => line.kind === 'text' && line.text,
      };
      return `${line.place.incarnation}.${line.place.seq} ${what[line.kind]()}`;
    });
  }

  test('are told from the place on, those of the next pod from its beginning', async () => {
    const pods = [`one\n${event(1)}two\n${event(2)}three\n`, `four\n${event(1)}`];
    assert.deepEqual(await told(pods, { incarnation: 1, seq: 1 }), [
      '1.1 two',
      '1.2 event',
      '1.2 three',
      '2.0 four',
      '2.1 event',
    ]);
  });

  test('tell how many events the log has lost', async () => {
    assert.deepEqual(await told([event(5)], { incarnation: 1, seq: 2 }), ['1.4 2 dropped', '1.5 event']);
    assert.deepEqual(await told([`${event(1)}`, event(3)], { incarnation: 1, seq: 0 }), [
      '1.1 event',
      '2.2 2 dropped',
      '2.3 event',
    ]);
  });

  test('are told if the log has lost the event of the place, those before the next event, too', async () => {
    const place = { incarnation: 1, seq: 5 };
    assert.deepEqual(await told([`three\n${event(6)}four\n`], place), ['1.5 three', '1.6 event', '1.6 four']);
    assert.deepEqual(await told([`three\n${event(8)}`], place), ['1.5 three', '1.7 2 dropped', '1.8 event']);
    assert.deepEqual(await told([`one\n${event(4)}two\n`], place), ['1.5 two']);
    assert.deepEqual(await told(['three\nfour\n'], place), ['1.5 three', '1.5 four'], 'up to the end of the log');
    const many = await told([`${'x'.repeat(999)}\n`.repeat(1_000)], place);
    assert.ok(many.length > 200 && many.length < 300, `of ${many.length} lines of a thousand`);
  });

  /** Follows a log that goes on: one line is there, and the others come when they are printed. */
  async function live(from: EventPlace) {
    const clock = new VirtualClock();
    const stop = new AbortController();
    const printed: LogLine[] = [];
    let wake = () => {};
    const print = async (text: string, ms = clock.now()) => {
      printed.push({ text, length: text.length, place: { newest: BigInt(ms) * 1_000_000n, line: 1 } });
      wake();
      await settled();
    };
    const read = async function* (_ref: unknown, _start: unknown, signal: AbortSignal) {
      for (let at = 0; ; ) {
        const line = printed[at];
        if (line) {
          at += 1;
          yield line;
        } else {
          await new Promise<void>((resolve, reject) => {
            wake = resolve;
            signal.addEventListener('abort', () => reject(signal.reason), { once: true });
          });
        }
      }
    };
    const states = (async function* () {
      const metadata = { name: 's', uid: 'u', resourceVersion: '1' };
      yield { metadata, phase: 'Ready' as const, podName: 'pod', incarnation: from.incarnation };
    })();
    const texts: string[] = [];
    const reading = (async () => {
      const options = { clock, namespace: 'ns', from, sinceTime: '', signal: stop.signal };
      for await (const line of podLines(read, states, options)) if (line.kind === 'text') texts.push(line.text);
    })();
    const close = async () => {
      stop.abort(new Error('enough'));
      await assert.rejects(reading, /enough/);
      assert.equal(clock.pending, 0);
    };
    return { clock, print, texts, close };
  }

  test('are told of a log that has lost the event of the place and goes on without one', async () => {
    const quiet = await live({ incarnation: 1, seq: 5 });
    await quiet.print('earlier', quiet.clock.now() - 60_000);
    assert.deepEqual(quiet.texts, [], 'the event of the place can follow');
    await quiet.clock.advance(2_000);
    assert.deepEqual(quiet.texts, ['earlier']);
    await quiet.print('next');
    assert.deepEqual(quiet.texts, ['earlier', 'next']);
    await quiet.close();

    const busy = await live({ incarnation: 1, seq: 5 });
    for (let s = 0; s < 4; s++) {
      await busy.print(`${s}`);
      assert.equal(busy.texts.length, s < 3 ? 0 : 4, 'until a line was surely printed after the stream began');
      await busy.clock.advance(1_000);
    }
    await busy.close();
  });

  /** Texts that are told of a session with these states, while the name `pod` is that of each of these pods in turn. */
  async function toldOfOneName(pods: { of: string; incarnation: number; log: string }[], incarnations: number[]) {
    let at = 0;
    const present = () => pods[Math.min(at, pods.length - 1)] as (typeof pods)[number];
    const api = {
      get: async () => podOf(present().of, present().incarnation, `pod-${at}`),
      podLog: async function* () {
        const { log } = present();
        // The pod ends with its log, and the next one gets its name.
        yield Buffer.from(`2026-01-01T00:00:00.000000001Z ${log}\n`);
        at += 1;
      },
    } as unknown as KubeApi;
    const states = (async function* () {
      for (const [i, incarnation] of incarnations.entries()) {
        const metadata = { name: 's', uid: 'ours', resourceVersion: String(i) };
        yield { metadata, phase: 'Ready' as const, podName: 'pod', incarnation };
      }
    })();
    const clock = new VirtualClock();
    const options = { clock, namespace: 'ns', from: { incarnation: 0, seq: 0 }, sinceTime: '' };
    const texts: string[] = [];
    const reading = (async () => {
      const { signal } = new AbortController();
      for await (const line of podLines(ownLines(api, clock), states, { ...options, signal }))
        if (line.kind === 'text') texts.push(`${line.place.incarnation} ${line.text}`);
    })();
    for (let i = 0; i < 20; i++) await clock.advance(1_000);
    await reading;
    return texts;
  }

  test('are told of every incarnation, also of one whose pod has the name of an earlier one', async () => {
    const pods = [
      { of: 'ours', incarnation: 1, log: 'one' },
      { of: 'ours', incarnation: 2, log: 'two' },
      { of: 'ours', incarnation: 3, log: 'three' },
    ];
    assert.deepEqual(await toldOfOneName(pods, [1, 1, 2, 2, 3]), ['1 one', '2 two', '3 three']);
  });

  test('are those of its pods alone, whoever has the name of one next', async () => {
    const pods = [
      { of: 'ours', incarnation: 1, log: 'one' },
      { of: 'theirs', incarnation: 1, log: 'secret' },
    ];
    assert.deepEqual(await toldOfOneName(pods, [1, 1, 2]), ['1 one']);
    assert.deepEqual(await toldOfOneName(pods.slice(1), [1, 2]), [], 'nor is a pod read that is not claimed yet');
  });

  /** A log of these lines, a millisecond apart, and what is told of it from a place on: texts, and numbers of events. */
  async function toldFrom(log: string[], from?: EventPlace, sinceTime = ''): Promise<[string | number, EventPlace][]> {
    const stamped = log.map((line, i) => `2026-01-01T00:00:00.${String(i).padStart(3, '0')}000000Z ${line}\n`).join('');
    let isRead = false;
    const api = {
      get: async () => podOf('u', 1, 'a'),
      podLog: async function* () {
        if (isRead) throw new ApiError({ code: 404, reason: 'NotFound', message: 'gone', details: { kind: 'pods' } });
        isRead = true;
        yield Buffer.from(stamped);
      },
    } as unknown as KubeApi;
    const states = (async function* () {
      yield {
        metadata: { name: 's', uid: 'u', resourceVersion: '1' },
        phase: 'Ready' as const,
        podName: 'p',
        incarnation: 1,
      };
    })();
    const clock = new VirtualClock();
    const told: [string | number, EventPlace][] = [];
    const reading = (async () => {
      const options = { clock, namespace: 'ns', from, sinceTime, signal: new AbortController().signal };
      for await (const line of podLines(ownLines(api, clock), states, options)) {
        if (line.kind === 'dropped') told.push([`${line.events} dropped`, line.place]);
        else told.push([line.kind === 'text' ? line.text : line.event.seq, line.place]);
      }
    })();
    for (let i = 0; i < 10; i++) await clock.advance(1_000);
    await reading;
    return told;
  }
  const said = (seq: number) => event(seq).trimEnd();

  test('are told once each, wherever the stream goes on after one of them', async () => {
    const log = ['one', said(1), 'two', 'three', said(2), 'four'];
    const all = await toldFrom(log, { incarnation: 1, seq: 0 });
    assert.deepEqual(
      all.map(([what]) => what),
      ['one', 1, 'two', 'three', 2, 'four'],
    );
    for (const [i, [, place]] of all.entries()) {
      const rest = await toldFrom(log, place);
      assert.deepEqual(rest, all.slice(i + 1), `after ${i}`);
    }
  });

  test('are told after a line before which no event was told, and no event counts as lost', async () => {
    const log = ['one', said(5), 'two'];
    const [[, place] = []] = await toldFrom(log, undefined, '2026-01-01T00:00:00.000Z');
    assert.equal(place?.seq, 0);
    assert.deepEqual(
      (await toldFrom(log, place)).map(([what]) => what),
      [5, 'two'],
    );
  });

  test('are told after an event of a number that its pod has not reached, as an agent could forge it earlier', async () => {
    const log = ['one', said(1), said(900_719), 'two', said(2), said(3)];
    const all = await toldFrom(log, { incarnation: 1, seq: 0 });
    assert.deepEqual(
      all.map(([what]) => what),
      ['one', 1, '900717 dropped', 900_719, 'two', 2, 3],
    );
    const forged = all.find(([what]) => what === 900_719);
    assert.deepEqual(
      (await toldFrom(log, forged?.[1])).map(([what]) => what),
      ['two', 2, 3],
      'nor does its place hide what follows',
    );
  });

  test('are all told from a place in a pod that the session has not had', async () => {
    assert.deepEqual(await told([`one\n${event(1)}`], { incarnation: 7, seq: 9 }), ['1.0 one', '1.1 event']);
  });
});

describe('the states of a namespace', () => {
  test('are told by their versions, so that whoever goes on after any of them misses none', async () => {
    const listed = [aTurn('c', '9', { phase: 'Failed' }), aTurn('a', '11'), aTurn('b', '10')];
    const api = {
      list: async (resource: { plural: string }) => ({
        items: resource.plural === 'turns' ? listed : [],
        metadata: { resourceVersion: '20' },
      }),
      watch: async function* (_: unknown, { signal }: { signal: AbortSignal }) {
        await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
    } as unknown as KubeApi;
    const states = new States({
      api,
      clock: new VirtualClock(),
      random: systemRandom,
      log: silentLogger,
      namespace: 'ns',
    });
    const from = async (turns: string | undefined, count: number) => {
      const stop = new AbortController();
      const told: string[] = [];
      const options = { ...(turns === undefined ? {} : { from: { sessions: '0', turns } }), signal: stop.signal };
      for await (const { change, cursor } of states.changes(options)) {
        told.push(`${change.view.metadata.name} ${cursor.turns}`);
        if (told.length === count) break;
      }
      return told;
    };
    assert.deepEqual(await from('0', 3), ['c 9', 'b 10', 'a 20']);
    assert.deepEqual(await from('10', 1), ['a 20']);
    assert.deepEqual(await from('99', 3), ['c 9', 'b 10', 'a 20'], 'a place that the server has not reached');
    assert.deepEqual(await from(undefined, 2), ['b 10', 'a 20'], 'turns that have ended are left out at the beginning');
    await states.stop();
  });
});

describe('the watches of a namespace', () => {
  const metadata = { namespace: 'ns', name: 'notes', uid: 'u', resourceVersion: '12' };
  const session = { metadata, spec: {}, status: {} };

  /** States of a namespace without sessions, with the number of lists of sessions so far and what its watch tells. */
  async function aNamespace() {
    const clock = new VirtualClock();
    let lists = 0;
    const listed: object[] = [];
    const events: object[] = [];
    let wake = () => {};
    const api = {
      list: async ({ plural }: { plural: string }) => {
        if (plural === 'sessions') lists += 1;
        return { items: plural === 'sessions' ? listed : [], metadata: { resourceVersion: '10' } };
      },
      watch: async function* ({ plural }: { plural: string }, { signal }: { signal: AbortSignal }) {
        for (;;) {
          if (plural === 'sessions') yield* events.splice(0);
          await new Promise<void>((resolve, reject) => {
            if (plural === 'sessions') wake = resolve;
            signal.addEventListener('abort', () => reject(signal.reason), { once: true });
          });
        }
      },
    } as unknown as KubeApi;
    const states = new States({ api, clock, random: systemRandom, log: silentLogger, namespace: 'ns' });
    const { signal } = new AbortController();
    await states.synced(signal);
    const tell = async (event: object) => {
      events.push(event);
      wake();
      await settled();
    };
    return { clock, states, signal, tell, listed, lists: () => lists };
  }

  test('begin anew at most once a second for places that the server has not reached, however many ask', async () => {
    const { clock, states, signal, lists } = await aNamespace();
    assert.equal(lists(), 1);
    const ahead = { sessions: '99', turns: '0' };
    const ask = (count: number) => Promise.all(Array.from({ length: count }, () => states.hasReached(ahead, signal)));
    assert.deepEqual(new Set(await ask(50)), new Set([false]));
    assert.equal(lists(), 2, 'one for all of them');
    const second = ask(50);
    for (let ms = 0; ms < 900; ms += 100) await clock.advance(100);
    const third = ask(50);
    assert.equal(lists(), 2);
    await clock.advance(100);
    assert.deepEqual(new Set([...(await second), ...(await third)]), new Set([false]));
    assert.equal(lists(), 3);
    await states.stop();
    assert.equal(clock.pending, 0);
  });

  test('are waited for while they lag behind the read of a session, and not begun anew', async () => {
    const { clock, states, signal, tell, lists } = await aNamespace();
    const found = states.find('notes', 'u', '12', signal);
    await clock.advance(500);
    await tell({ type: 'ADDED', object: session });
    assert.equal((await found)?.metadata.uid, 'u');
    assert.equal(
      await states.find('gone', 'v', '11', signal),
      undefined,
      'it was deleted before the watch came so far',
    );
    assert.equal(lists(), 1);
    await states.stop();
    assert.equal(clock.pending, 0);
  });

  test('begin anew where they lag for a second', async () => {
    const { clock, states, signal, listed, lists } = await aNamespace();
    listed.push(session);
    const found = states.find('notes', 'u', '12', signal);
    await clock.advance(900);
    assert.equal(lists(), 1);
    await clock.advance(100);
    assert.equal((await found)?.metadata.uid, 'u');
    assert.equal(lists(), 2);
    await states.stop();
  });
});

describe('the stream of a session', () => {
  const metadata = { namespace: 'ns', name: 'notes' };

  /** First event that is wanted of the stream of the session `notes`, while the watch tells nothing. */
  async function firstOf(
    api: object,
    options: { uid: string; from?: SessionCursor },
    isWanted: (placed: Placed) => boolean = () => true,
  ): Promise<Placed | undefined> {
    const watch = async function* (_: unknown, { signal }: { signal: AbortSignal }) {
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const server = { watch, ...api } as unknown as KubeApi;
    const clock = new VirtualClock();
    const states = new States({ api: server, clock, random: systemRandom, log: silentLogger, namespace: 'ns' });
    const stop = new AbortController();
    await states.synced(stop.signal);
    const events = sessionEvents(
      { clock, states, read: ownLines(server, clock) },
      { ...metadata, ...options, logs: false, signal: stop.signal },
    );
    try {
      for (;;) {
        const { value, done } = await events.next();
        if (done || isWanted(value)) return value ?? undefined;
      }
    } finally {
      stop.abort(new Error('enough'));
      await events.return(undefined).catch(() => undefined);
      await states.stop();
    }
  }

  /** First event of the session with this UID, while lists have one of its name with these UIDs. */
  async function firstTold(uid: string, listed: string[]) {
    let lists = 0;
    const list = async ({ plural }: { plural: string }) => {
      if (plural !== 'sessions') return { items: [], metadata: { resourceVersion: '1' } };
      const listedNow = listed[Math.min(lists++, listed.length - 1)];
      const present = { ...metadata, uid: listedNow, resourceVersion: String(10 * lists) };
      const items = listedNow ? [{ metadata: present, spec: {}, status: { phase: 'Ready' } }] : [];
      return { items, metadata: { resourceVersion: String(10 * lists + 1) } };
    };
    return (await firstOf({ list }, { uid }))?.event;
  }

  /** First event of the agent, and its id, of a pod that has said seven, from the place of the fifth on. */
  async function firstFrom(session?: string) {
    const said = (seq: number) => eventLine({ seq, turn: 'a', at: '2026-01-01T00:00:00.000Z', event: seq });
    const log = [1, 2, 3, 4, 5, 6, 7].map((seq) => `2026-01-01T00:00:0${seq}.000000000Z ${said(seq)}`).join('');
    const uid = 'aaaaaaaa-1';
    const status = { phase: 'Ready', podName: 'p', incarnation: 1 };
    const present = { metadata: { ...metadata, uid, resourceVersion: '20' }, spec: {}, status };
    const api = {
      list: async ({ plural }: { plural: string }) => ({
        items: plural === 'sessions' ? [present] : [],
        metadata: { resourceVersion: '21' },
      }),
      get: async () => podOf(uid, 1, 'pod-uid'),
      podLog: async function* () {
        yield Buffer.from(log);
      },
    };
    const place = { incarnation: 1, seq: 5 };
    const from = { states: { sessions: '20', turns: '9' }, place, ...(session === undefined ? {} : { session }) };
    const { id, event } = (await firstOf(api, { uid, from }, (placed) => placed.event.type === 'agent')) ?? {};
    return [event?.type === 'agent' && event.data.event, id];
  }

  test('begins with the session as it was made again while the watch still has the one before', async () => {
    const told = await firstTold('U2', ['U1', 'U2']);
    assert.ok(told?.type === 'session');
    assert.equal(told.data.uid, 'U2');
    assert.equal((await firstTold('U2', ['', 'U2']))?.type, 'session', 'nor does the watch know one of its name');
    for (const now of ['', 'U3']) {
      const { type, data } = (await firstTold('U2', ['U1', now])) ?? {};
      assert.deepEqual([type, data], ['deleted', { session: 'notes', uid: 'U2' }], `there is ${now || 'none'} now`);
    }
  });

  test('has all that the agent said where the place is that of an earlier session of the name', async () => {
    assert.deepEqual(await firstFrom('bbbbbbbb'), [1, '20.9.1.1.aaaaaaaa.1767225601000000000.1']);
    assert.deepEqual(await firstFrom('aaaaaaaa'), [6, '20.9.1.6.aaaaaaaa.1767225606000000000.1']);
    assert.deepEqual(await firstFrom(), [6, '20.9.1.6.aaaaaaaa.1767225606000000000.1'], 'an id without a session');
  });
});

describe('merged iterators', () => {
  const soon = () => new Promise((resolve) => setImmediate(resolve));

  test('keep their order, and one that always has something does not hold up another', async () => {
    async function* many() {
      for (let i = 0; i < 100; i++) yield `m${i}`;
    }
    async function* few() {
      yield 'f0';
      await soon();
      yield 'f1';
    }
    const all: string[] = [];
    for await (const item of merged([many(), few()])) all.push(item);
    assert.equal(all.length, 102);
    assert.deepEqual(
      all.filter((item) => item.startsWith('f')),
      ['f0', 'f1'],
    );
    assert.ok(all.indexOf('f0') < 3);
  });

  test('end with the first error, and end the others', async () => {
    let isEnded = false;
    async function* waits() {
      try {
        yield 1;
        yield 2;
      } finally {
        isEnded = true;
      }
    }
    async function* fails(): AsyncGenerator<number> {
      yield 0;
      throw new Error('broken');
    }
    await assert.rejects(async () => {
      for await (const _ of merged([waits(), fails()])) await soon();
    }, /broken/);
    await soon();
    assert.ok(isEnded);
  });
});
