import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { describe, test } from 'vitest';
import { systemClock } from '../../../../clients/typescript/src/clock.ts';
import {
  type Approval,
  ConnectionLost,
  DeadlineExceeded,
  OutputTooLarge,
  type ProblemError,
  TurnCancelled,
  TurnError,
  TurnFailed,
  TurnTimedOut,
} from '../../../../clients/typescript/src/index.ts';
import {
  cut,
  cutBody,
  json,
  LeapingClock,
  type Misbehaving,
  problem,
  rejection,
  serving,
  session,
  turn,
} from './server.ts';

const paths = ({ seen }: Misbehaving) =>
  seen.map(({ method, url }) => `${method} ${url.replace(/^.*\/default\//, '')}`);
const failed = (code: string) => ({ error: { code, message: 'It said no.' } });

describe('the result of a turn', () => {
  test('is asked for until the turn has ended, over lost answers and a server that is being stopped', async () => {
    const server = await serving(
      json(200, turn('notes-1', { phase: 'Queued' })),
      cut,
      json(200, turn('notes-1', { phase: 'Running' })),
      json(200, turn('notes-1', { phase: 'Succeeded', output: { n: 3 } })),
    );
    const result = await server.client().session('notes').turn('notes-1').result<{ n: number }>();
    assert.equal(result.output.n, 3);
    assert.equal(result.phase, 'Succeeded');
    assert.deepEqual([...new Set(paths(server))], ['GET sessions/notes/turns/notes-1?wait=30000ms']);
    assert.equal(server.seen.length, 4);
  });

  test('has exact numbers, and every digit of the text that the server sent', async () => {
    const text = JSON.stringify(turn('notes-1', { phase: 'Succeeded', output: 'OUTPUT' }));
    const output = '{"big": 9007199254740993, "tiny":1e-400,"one":1.0}';
    const server = await serving(json(200, text.replace('"OUTPUT"', output)));
    const result = await server.client().session('notes').turn('notes-1').result();
    assert.deepEqual(result.output, { big: 9007199254740993n, tiny: '1e-400', one: 1 });
    assert.equal(result.text(), output);
  });

  test('has null, an empty text and no output apart', async () => {
    const server = await serving(
      json(200, turn('t', { phase: 'Succeeded', output: null })),
      json(200, turn('t', { phase: 'Succeeded', output: '' })),
      json(200, turn('t', { phase: 'Succeeded' })),
    );
    const one = server.client().session('notes').turn('t');
    const results = [await one.result(), await one.result(), await one.result()];
    assert.deepEqual(
      results.map(({ output, text }) => [output, text()]),
      [
        [null, 'null'],
        ['', '""'],
        [undefined, ''],
      ],
    );
  });

  test('that is not part of the turn is read, unless it is larger than the client takes', async () => {
    const ended = json(200, turn('t', { phase: 'Succeeded', outputRef: 'x', outputBytes: 20_000 }));
    const server = await serving(ended, json(200, '"é 12345678901234567890"'), ended);
    const result = await server.client().session('notes').turn('t').result();
    assert.equal(result.output, 'é 12345678901234567890');
    assert.equal(paths(server)[1], 'GET sessions/notes/turns/t/output');
    const small = server.client({ maxOutputBytes: 10_000 }).session('notes').turn('t');
    const error = await rejection(small.result());
    assert.ok(error instanceof OutputTooLarge);
    assert.match(error.message, /has 20000 bytes, and maxOutputBytes is 10000/);
    assert.equal(server.seen.length, 3);
  });

  test('of any size is streamed, and a cut is told', async () => {
    const server = await serving(json(200, '[1,2]'), cutBody('[1,'));
    const one = server.client().session('notes').turn('t');
    const read = async () => {
      let text = '';
      for await (const chunk of one.streamOutput()) text += Buffer.from(chunk);
      return text;
    };
    assert.equal(await read(), '[1,2]');
    assert.ok((await rejection(read())) instanceof ConnectionLost);
  });

  const classes = {
    Failed: TurnFailed,
    TimedOut: TurnTimedOut,
    Cancelled: TurnCancelled,
    Evaporated: TurnError,
  };
  for (const [phase, Class] of Object.entries(classes)) {
    test(`of a turn that ended as ${phase} rejects with a ${Class.name} that has the code and the turn`, async () => {
      const server = await serving(json(200, turn('notes-1', { phase, ...failed('AgentFailed') })));
      const error = await rejection(server.client().session('notes').turn('notes-1').result());
      assert.ok(error instanceof Class && error instanceof TurnError, inspect(error));
      assert.deepEqual([error.name, error.code, error.phase], [Class.name, 'AgentFailed', phase]);
      assert.match(
        error.message,
        new RegExp(`turn notes-1 of session notes ended as ${phase}: AgentFailed: It said no.`),
      );
      assert.equal(error.turn.metadata.name, 'notes-1');
    });
  }

  test('is not waited for longer than the deadline, and the turn goes on', async () => {
    const server = await serving(json(200, turn('notes-1', { phase: 'Running' })));
    const error = await rejection(
      server.client({ clock: new LeapingClock() }).session('notes').turn('notes-1').result({ deadlineMs: 30 }),
    );
    assert.ok(error instanceof DeadlineExceeded);
    assert.match(error.message, /has not ended within 0\.03 s, and goes on$/);
    assert.ok(paths(server).every((path) => path.startsWith('GET ')));
  });

  test('of another turn that has come under the name is not taken for it', async () => {
    const other = turn('t', { phase: 'Succeeded' });
    const server = await serving(
      json(200, turn('t')),
      json(200, { ...other, metadata: { ...other.metadata, uid: 'another' } }),
    );
    const one = await server.client().session('notes').turns.get('t');
    assert.equal(((await rejection(one.result())) as ProblemError).code, 'UIDMismatch');
  });
});

describe('the question of a turn', () => {
  const asking = {
    id: 'deploy',
    requestId: 'deploy',
    prompt: 'Deploy?',
    payload: { n: 1 },
    since: '2026-01-01T00:00:00Z',
  };
  const asks = json(200, turn('notes-1', { phase: 'AwaitingApproval', approval: asking }));

  test('is given to onApproval once, and can be decided there', async () => {
    const server = await serving(
      asks,
      json(201, session('deploy')),
      asks,
      asks,
      json(200, turn('notes-1', { phase: 'Succeeded', output: 1 })),
    );
    const asked: Approval[] = [];
    const onApproval = async (approval: Approval) => {
      asked.push(approval);
      await approval.approve({ note: 'tested', response: { to: 'production' }, idempotencyKey: 'k' });
    };
    await server.client().session('notes').turn('notes-1').result({ onApproval });
    assert.deepEqual(
      asked.map(({ requestId, prompt, payload, turn, session }) => ({ requestId, prompt, payload, turn, session })),
      [{ requestId: 'deploy', prompt: 'Deploy?', payload: { n: 1 }, turn: 'notes-1', session: 'notes' }],
    );
    const { url, headers, body } = server.seen[1] ?? assert.fail();
    assert.match(url, /\/sessions\/notes\/turns\/notes-1\/approvals$/);
    assert.equal(headers['idempotency-key'], 'k');
    assert.deepEqual(JSON.parse(body).spec, {
      requestId: 'deploy',
      decision: 'Approve',
      note: 'tested',
      response: { to: 'production' },
    });
  });

  test('ends a wait, as the end of the turn does', async () => {
    const server = await serving(
      json(200, turn('notes-1', { phase: 'Running' })),
      asks,
      json(200, turn('notes-1', { phase: 'AwaitingApproval', approval: { ...asking, decided: true } })),
      json(200, turn('notes-1', { phase: 'Failed', ...failed('AgentFailed') })),
    );
    const one = server.client().session('notes').turn('notes-1');
    assert.equal(one.asks(), undefined);
    assert.equal((await one.wait()).status?.phase, 'AwaitingApproval');
    assert.equal(one.asks()?.prompt, 'Deploy?');
    assert.equal((await one.wait()).status?.phase, 'Failed');
    assert.equal(one.asks(), undefined);
    assert.equal(server.seen.length, 4);
  });

  test('that is known does not end the next wait', async () => {
    const server = await serving(asks, json(200, turn('notes-1', { phase: 'Succeeded', output: 1 })));
    await server.client().session('notes').turn('notes-1').result();
    const one = 'GET sessions/notes/turns/notes-1?wait=30000ms';
    assert.deepEqual(paths(server), [one, `${one}&requestId=deploy`]);
  });

  test('that nobody decides leaves the wait going on', async () => {
    const server = await serving(asks);
    const error = await rejection(
      server.client({ clock: new LeapingClock() }).session('notes').turn('notes-1').result({ deadlineMs: 30 }),
    );
    assert.ok(error instanceof DeadlineExceeded);
  });

  test('is what its session waits for', async () => {
    const waiting = turn('notes-2', { phase: 'AwaitingApproval', approval: asking });
    const others = [turn('notes-1', { phase: 'Succeeded' }), turn('notes-3', { phase: 'Queued' })];
    const server = await serving(json(200, { items: [...others, waiting] }), json(201, session('deploy')));
    const [approval, ...more] = await server.client().session('notes').approvals();
    assert.deepEqual([approval?.requestId, approval?.turn, more], ['deploy', 'notes-2', []]);
    await approval?.deny();
    assert.equal(JSON.parse(server.seen[1]?.body ?? '').spec.decision, 'Deny');
  });
});

describe('a run', () => {
  const run = (status: object, more: object = {}) => ({
    session: session('run-1'),
    turn: turn('run-1-1', status, 'run-1'),
    phase: 'x',
    ...more,
  });

  test('gives the output of its answer', async () => {
    const server = await serving(json(200, run({ phase: 'Succeeded' }, { output: { answer: 42 } })));
    const { output, text, session: made, turn } = await server.client().run<{ answer: number }>({ input: 1 });
    assert.equal(output.answer, 42);
    assert.equal(text(), '{"answer":42}');
    assert.deepEqual([made.name, turn.name], ['run-1', 'run-1-1']);
    assert.deepEqual(paths(server), ['POST runs?wait=30000ms']);
  });

  test('that has no turn yet is asked for again with its key, and then by its turn', async () => {
    const { turn: _, ...untaken } = run({});
    const server = await serving(
      cut,
      json(202, untaken),
      json(202, untaken),
      json(202, run({ phase: 'Running' })),
      json(200, turn('run-1-1', { phase: 'Succeeded', output: 7 }, 'run-1')),
    );
    assert.equal((await server.client().run({ input: 1 })).output, 7);
    const create = 'POST runs?wait=30000ms';
    assert.deepEqual(paths(server), [create, create, create, create, 'GET sessions/run-1/turns/run-1-1?wait=30000ms']);
    assert.equal(new Set(server.seen.slice(0, 4).map(({ headers }) => headers['idempotency-key'])).size, 1);
  });

  test('that is not taken up within the deadline rejects with the key by which it is found again', async () => {
    const { turn: _, ...untaken } = run({});
    const server = await serving(json(202, untaken));
    const monotonic = () => (server.seen.length < 2 ? 0 : 60_000);
    const client = server.client({ clock: { ...systemClock, monotonic } });
    const error = await rejection(client.run({ input: 1 }, { deadlineMs: 60_000, idempotencyKey: 'mine' }));
    assert.ok(error instanceof DeadlineExceeded);
    assert.equal(error.idempotencyKey, 'mine');
  });

  test('that failed rejects with its error', async () => {
    const server = await serving(json(200, run({ phase: 'Failed', ...failed('AgentFailed') })));
    assert.ok((await rejection(server.client().run({ input: 1 }))) instanceof TurnFailed);
  });
});

describe('the sessions', () => {
  test('are listed over pages; a list that cannot be continued begins anew without repeats', async () => {
    const list = (names: string[], more?: string) =>
      json(200, { items: names.map((name) => session(name, { phase: 'Ready' })), ...(more ? { continue: more } : {}) });
    const server = await serving(
      list(['a', 'b'], 'two'),
      problem(410, 'ContinueExpired'),
      list(['a', 'b', 'b2'], 'again'),
      list(['c']),
    );
    const names: string[] = [];
    for await (const { name } of server
      .client()
      .sessions.list({ labelSelector: 'team=blue', phase: ['Ready', 'Queued'] }))
      names.push(name);
    assert.deepEqual(names, ['a', 'b', 'b2', 'c']);
    assert.match(server.seen[0]?.url ?? '', /\?labelSelector=team%3Dblue&phase=Ready%2CQueued$/);
    assert.deepEqual(
      server.seen.map(({ url }) => new URL(url, server.url).searchParams.get('continue')),
      [null, 'two', null, 'again'],
    );
  });

  test('and turns are listed without their specs on demand', async () => {
    const server = await serving(json(200, { items: [] }));
    const client = server.client();
    for await (const _ of client.sessions.list({ specs: false }));
    for await (const _ of client.session('notes').turns.list({ specs: false }));
    for await (const _ of client.sessions.list({ specs: true }));
    assert.deepEqual(paths(server), [
      'GET sessions?specs=false',
      'GET sessions/notes/turns?specs=false',
      'GET sessions',
    ]);
  });

  test('are changed under the UID that was read, and only then with one', async () => {
    const server = await serving(json(202, session('notes')));
    const notes = server.client().session('notes');
    await notes.suspend({ hold: true });
    await notes.resume();
    await notes.restart();
    await notes.touch();
    await notes.turns.create({ input: 1 }).catch(() => {});
    assert.deepEqual(paths(server), [
      'POST sessions/notes/suspend',
      'POST sessions/notes/resume?uid=uid-of-notes',
      'POST sessions/notes/restart?uid=uid-of-notes',
      'POST sessions/notes/touch?uid=uid-of-notes',
      'POST sessions/notes/turns?uid=uid-of-notes',
    ]);
    assert.equal(server.seen[0]?.body, '{"hold":true}');
  });

  test('give up a wait between two tries with the client’s own times', async () => {
    const server = await serving(problem(503, 'Overloaded'));
    const client = server.client({ deadlineMs: 20, clock: new LeapingClock() });
    assert.ok((await rejection(client.sessions.get('notes'))) instanceof DeadlineExceeded);
  });
});

describe('the log of a turn', () => {
  test('that was lost is refused, and is no empty text', async () => {
    const server = await serving(problem(404, 'NoLog'));
    const lost = await rejection(server.client().session('notes').turn('notes-1').log());
    assert.equal((lost as ProblemError).code, 'NoLog');
  });
});
