import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { inspect } from 'node:util';
import { describe, test } from 'vitest';
import {
  ConnectionLost,
  NotBerth,
  type ProblemError,
  problems,
  type SessionStreamEvent,
} from '../../../../clients/typescript/src/index.ts';
import { readEvents } from '../../../../clients/typescript/src/sse.ts';
import { eventually } from '../../../support/eventually.ts';
import { type Answerer, json, LeapingClock, page, problem, QUICK, rejection, serving, turn } from './server.ts';

const line = (n: number) => `id: ${n}\nevent: log\ndata: {"session":"notes","text":"line ${n}"}\n\n`;
const told = (id: string, type: string, data: object) => `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
const state = (id: string, uid = 'u') => told(id, 'session', { session: 'notes', uid, phase: 'Ready' });
const DELETED = told('9', 'deleted', { session: 'notes', uid: 'u' });

/** Sends a stream and ends it, or leaves it open. */
const stream =
  (text: string, how: 'end' | 'cut' | 'open' = 'end'): Answerer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`: berth\n\n${text}`, () => {
      if (how === 'end') response.end();
      if (how === 'cut') response.socket?.destroy();
    });
  };

async function all<T>(events: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const event of events) found.push(event);
  return found;
}
const texts = (events: SessionStreamEvent[]) =>
  events.map((event) => (event.type === 'log' ? event.data.text : event.type));

describe('a stream of server-sent events', () => {
  const text =
    ': c\n\nid: 1\nevent: log\ndata: {"text":"é😀"}\n\nid:2\r\nevent: x\r\ndata: a\r\ndata: b\r\n\r\nevent: empty\n\nid: 3\ndata: cut';
  const events = [
    { id: '1', type: 'log', data: '{"text":"é😀"}' },
    { id: '2', type: 'x', data: 'a\nb' },
  ];

  test('is read the same however it is cut, and without an event that has not ended', async () => {
    const bytes = new TextEncoder().encode(text);
    for (const size of [1, 2, 3, 7, bytes.length]) {
      const chunks = (async function* () {
        for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
      })();
      assert.deepEqual(await all(readEvents(chunks)), events, `pieces of ${size} bytes`);
    }
  });

  test('with an event beyond all measure is given up', async () => {
    const piece = new TextEncoder().encode('x'.repeat(2 ** 20));
    const chunks = (async function* () {
      for (;;) yield piece;
    })();
    assert.ok((await rejection(all(readEvents(chunks)))) instanceof NotBerth);
  });
});

describe('the events of a session', () => {
  test('go on after the last one when the stream is cut, ends, or goes silent', async () => {
    const server = await serving(
      stream(state('1') + line(2), 'cut'),
      problem(503, 'ShuttingDown'),
      stream(`${line(3)}id: 4\nevent: log\ndata: {"se`, 'end'),
      stream(line(4), 'open'),
      stream(line(5) + DELETED),
    );
    const clock = new LeapingClock();
    const client = server.client({ clock, timing: { ...QUICK, silenceMs: 1_000 } });
    const events: SessionStreamEvent[] = [];
    let silence: Promise<boolean> | undefined;
    for await (const event of client.session('notes').events({ logs: true })) {
      events.push(event);
      if (event.id === '4') silence = eventually(() => clock.end(1_000), { what: 'the client waits for more' });
    }
    await silence;
    assert.deepEqual(texts(events), ['session', 'line 2', 'line 3', 'line 4', 'line 5', 'deleted']);
    assert.deepEqual(
      server.seen.map(({ url, headers }) => [url.split('?')[1], headers['last-event-id']]),
      [
        ['logs=true', undefined],
        ['logs=true', '2'],
        ['logs=true', '2'],
        ['logs=true', '3'],
        ['logs=true', '4'],
      ],
    );
  });

  test('begin after the id that the reader gives, and have exact numbers', async () => {
    const agent = 'id: 8\nevent: agent\ndata: {"turn":"t","event":{"n":9007199254740993}}\n\n';
    const server = await serving(stream(agent + DELETED));
    const [event] = await all(server.client().session('notes').events({ after: '7' }));
    assert.equal(server.seen[0]?.headers['last-event-id'], '7');
    assert.deepEqual(event, { type: 'agent', id: '8', data: { turn: 't', event: { n: 9007199254740993n } } });
  });

  test('of a session that was deleted unseen end with NotFound, or with UIDMismatch where another has its name', async () => {
    const gone = await serving(stream(state('1'), 'cut'), problem(404, 'NotFound'));
    assert.ok((await rejection(all(gone.client().session('notes').events()))) instanceof problems.NotFound);
    const replaced = await serving(stream(state('1'), 'cut'), stream(state('2', 'another')));
    const error = await rejection(all(replaced.client().session('notes').events()));
    assert.equal((error as ProblemError).code, 'UIDMismatch', inspect(error));
  });

  test('that may not be read, or are a page of a proxy, end with that', async () => {
    const refused = await serving(problem(403, 'Forbidden'));
    assert.ok((await rejection(all(refused.client().session('notes').events()))) instanceof problems.Forbidden);
    const other = await serving(page(200, '<title>Log in</title>'));
    assert.ok((await rejection(all(other.client().session('notes').events()))) instanceof NotBerth);
    assert.equal(other.seen.length, 1);
  });

  test('close their connection when the reader leaves the loop', async () => {
    const server = await serving(stream(state('1'), 'open'));
    for await (const _ of server.client().session('notes').events()) break;
    await eventually(() => server.openSockets === 0, { what: 'the connection is closed' });
  });

  test('end with the reason of the signal, while nothing comes and between two streams', async () => {
    const reason = new Error('enough');
    for (const [answer, timing] of [
      [stream(state('1'), 'open'), QUICK],
      [stream(state('1'), 'cut'), { ...QUICK, baseMs: 60_000, maxMs: 60_000 }],
    ] as const) {
      const control = new AbortController();
      const server = await serving(answer);
      const read = async () => {
        for await (const _ of server.client({ timing }).session('notes').events({ signal: control.signal })) {
          setTimeout(() => control.abort(reason), 20);
        }
      };
      assert.equal(await rejection(read()), reason);
      await eventually(() => server.openSockets === 0, { what: 'the connection is closed' });
    }
  });

  test('leave no listener on a signal that outlives them', async () => {
    const { signal } = new AbortController();
    const server = await serving(stream(state('1'), 'cut'), stream(state('2') + DELETED), json(404, '{}'));
    const session = server.client().session('notes');
    await all(session.events({ signal }));
    await rejection(session.get({ signal }));
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  });

  test('end where no server answers within the deadline', async () => {
    const server = await serving(stream(state('1'), 'open'));
    const options = { deadlineMs: 50, clock: new LeapingClock() };
    const read = async () => {
      for await (const _ of server.client(options).session('notes').events()) await server.close();
    };
    const error = await rejection(read());
    assert.ok(error.cause instanceof ConnectionLost, inspect(error));
  });

  for (const [what, text] of [
    ['nothing', ''],
    ['the same event', line(1)],
  ] as const) {
    test(`are asked for at most 12 times in ten seconds by a stream that brings ${what} and ends, again and again`, async () => {
      const control = new AbortController();
      const clock = new LeapingClock({ leapMs: 5_000, leapt: (now) => void (now > 10_000 && control.abort()) });
      const server = await serving(stream(text));
      const client = server.client({ clock, timing: {}, deadlineMs: 300_000 });
      await rejection(all(client.session('notes').events({ signal: control.signal })));
      assert.ok(clock.monotonic() > 10_000);
      assert.ok(server.seen.length >= 5 && server.seen.length <= 12, `${server.seen.length} requests`);
    });
  }
});

describe('the events of a turn', () => {
  test('are those that name it, from the beginning to its end', async () => {
    const of = (turn: string, phase: string) => ({ session: 'notes', turn, uid: turn, phase });
    const text = [
      state('1'),
      told('2', 'turn', of('notes-1', 'Succeeded')),
      told('3', 'turn', of('notes-2', 'Running')),
      told('4', 'agent', { session: 'notes', turn: 'notes-2', at: 'x', event: 1 }),
      line(5),
      told('6', 'turn', of('notes-2', 'Failed')),
      told('7', 'turn', of('notes-3', 'Running')),
    ].join('');
    const server = await serving(stream(text, 'open'), json(200, turn('notes-2')));
    const events = await all(server.client().session('notes').turn('notes-2').events());
    assert.deepEqual(
      events.map(({ id }) => id),
      ['3', '4', '6'],
    );
    assert.equal(server.seen[0]?.headers['last-event-id'], '0.0.0.0');
  });
});

describe('the events of a turn that was deleted', () => {
  test('before the first stream or between two end with NotFound, and leave no stream open', async () => {
    const running = told('1', 'turn', { session: 'notes', turn: 't', uid: 'uid-of-t', phase: 'Running' });
    const gone = problem(404, 'NotFound');
    for (const answers of [
      [stream('', 'open'), gone],
      [stream(running, 'cut'), json(200, turn('t')), stream('', 'open'), gone],
    ]) {
      const server = await serving(...(answers as Answerer[]));
      const read = all(server.client().session('notes').turn('t').events());
      assert.ok((await rejection(read)) instanceof problems.NotFound);
      await eventually(() => server.openAnswers === 0, { what: 'the stream is closed' });
    }
  });

  test('and made anew by its name end with UIDMismatch', async () => {
    const before = json(200, turn('t'));
    const other = json(200, { ...turn('t'), metadata: { ...turn('t').metadata, uid: 'another' } });
    const server = await serving(before, stream('', 'open'), other);
    const one = await server.client().session('notes').turns.get('t');
    assert.ok((await rejection(all(one.events()))) instanceof problems.UIDMismatch);
  });
});

describe('the events of a namespace', () => {
  test('go on when one session is deleted', async () => {
    const server = await serving(stream(state('1.1') + DELETED + state('1.2', 'v'), 'open'));
    const types: string[] = [];
    for await (const { type } of server.client().events()) if (types.push(type) === 3) break;
    assert.deepEqual(types, ['session', 'deleted', 'session']);
    assert.match(server.seen[0]?.url ?? '', /\/v1\/namespaces\/default\/events$/);
  });
});
