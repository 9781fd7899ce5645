import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, test } from 'vitest';
import {
  Berth,
  BerthError,
  ConfigurationError,
  ConnectionLost,
  DeadlineExceeded,
  NotBerth,
  ProblemError,
  problems,
} from '../../../../clients/typescript/src/index.ts';
import { eventually } from '../../../support/eventually.ts';
import {
  type Answerer,
  cut,
  cutBody,
  hang,
  json,
  LeapingClock,
  type Misbehaving,
  page,
  problem,
  QUICK,
  rejection,
  serving,
  session,
  TOKEN,
  turn,
} from './server.ts';

const keysOf = ({ seen }: Misbehaving) => seen.map(({ headers }) => headers['idempotency-key'] as string | undefined);

describe('a create', () => {
  test('is repeated with its Idempotency-Key and its body when the answer is lost', async () => {
    const server = await serving(cut, cutBody('{"metadata"'), json(201, session('notes')));
    const made = await server.client().sessions.create({ class: 'small' }, { name: 'notes' });
    assert.equal(made.name, 'notes');
    assert.equal(made.uid, 'uid-of-notes');
    const [first, ...others] = keysOf(server);
    assert.match(first ?? '', /^[\w-]{36}$/);
    assert.deepEqual(others, [first, first]);
    assert.equal(new Set(server.seen.map(({ body }) => body)).size, 1);
    assert.deepEqual(JSON.parse(server.seen[0]?.body ?? ''), { metadata: { name: 'notes' }, spec: { class: 'small' } });
  });

  test('has the caller’s key, which the error has too when the deadline is over', async () => {
    const server = await serving(cut);
    const client = server.client({ deadlineMs: 50, clock: new LeapingClock() });
    const error = await rejection(client.sessions.create({}, { idempotencyKey: 'mine' }));
    assert.ok(error instanceof DeadlineExceeded, inspect(error));
    assert.equal(error.idempotencyKey, 'mine');
    assert.ok(error.cause instanceof ConnectionLost);
    assert.deepEqual([...new Set(keysOf(server))], ['mine']);
  });

  test('sends integers of any size with all digits, and refuses NaN', async () => {
    const server = await serving(json(201, turn('notes-1')));
    const { turns } = server.client().session('notes');
    await turns.create({ input: { n: 9007199254740993n, list: [-12345678901234567890n, 'x'] } });
    assert.match(server.seen[0]?.body ?? '', /"input":\{"n":9007199254740993,"list":\[-12345678901234567890,"x"\]\}/);
    const error = await rejection(turns.create({ input: { share: Number.NaN } }));
    assert.ok(error instanceof ConfigurationError);
    assert.match(error.message, /^"share" is NaN/);
    assert.equal(server.seen.length, 1);
  });
});

describe('a server that asks to come back', () => {
  test('is asked again after 429, 503, 504, 408 and a proxy’s 502', async () => {
    const server = await serving(
      problem(429, 'CallerLimit', { 'retry-after': '0' }),
      problem(503, 'Overloaded'),
      page(504, 'late'),
      problem(408, 'RequestTimeout'),
      page(502, '<title>Bad Gateway</title>'),
      json(200, session('notes')),
    );
    const outcomes: unknown[] = [];
    await server
      .client({ onRequest: (outcome) => outcomes.push(outcome) })
      .session('notes')
      .get();
    assert.deepEqual(outcomes, [429, 503, 504, 408, 502, 200]);
  });

  test('is not waited for beyond the deadline', async () => {
    const server = await serving(problem(429, 'CallerLimit', { 'retry-after': '3600' }));
    const error = await rejection(server.client().session('notes').get());
    assert.ok(error instanceof DeadlineExceeded);
    assert.match(error.message, /within 60 s; the last try met: It is CallerLimit\., and asked to wait 3600 s$/);
    assert.ok(error.cause instanceof problems.CallerLimit);
    assert.equal(server.seen.length, 1);
  });

  test('that says that stored data is damaged is not asked again', async () => {
    const server = await serving(problem(502, 'StoredDataMissing'));
    const error = await rejection(server.client().session('notes').get());
    assert.equal((error as ProblemError).code, 'StoredDataMissing');
    assert.equal(server.seen.length, 1);
  });
});

describe('a refusal', () => {
  test('is of the class of its code, with status, fields and the id of the request', async () => {
    const errors = [{ field: 'spec.class', message: 'is not there' }];
    const body = { status: 404, code: 'NotFound', detail: 'There is no session "x".', errors };
    const server = await serving(json(404, body, { 'x-request-id': 'r-1' }));
    const error = await rejection(server.client().session('x').get());
    assert.ok(error instanceof problems.NotFound && error instanceof ProblemError && error instanceof BerthError);
    const { name, status, code, message, fields, requestId } = error;
    assert.deepEqual([name, status, code, requestId], ['NotFound', 404, 'NotFound', 'r-1']);
    assert.equal(message, 'There is no session "x".');
    assert.deepEqual(fields, errors);
    assert.equal(server.seen.length, 1);
  });

  test('with a code of a later release is a ProblemError', async () => {
    const server = await serving(problem(409, 'Eclipsed'));
    const error = await rejection(server.client().session('x').get());
    assert.equal(error.constructor, ProblemError);
    assert.equal((error as ProblemError).code, 'Eclipsed');
  });

  test('by an API of another release of what it does not know says both releases', async () => {
    const server = await serving(
      problem(422, 'Invalid', { 'berth-version': '9.9.9' }),
      json(200, '[]', { 'berth-version': '9.9.9' }),
    );
    const client = server.client();
    const both = /\(?the API is of release 9\.9\.9, this client of \d+\.\d+\.\d+/;
    assert.match((await rejection(client.session('x').get())).message, both);
    assert.match((await rejection(client.session('x').get())).message, both);
    assert.equal(client.releases.server, '9.9.9');
  });
});

describe('a server that is not Berth’s', () => {
  test('with a page in place of JSON is named, with the page', async () => {
    const server = await serving(page(200, '<html><title>Log in</title></html>'), page(404, '<title>Nothing</title>'));
    for (const title of ['Log in', 'Nothing']) {
      const error = await rejection(server.client().session('x').get());
      assert.ok(error instanceof NotBerth, inspect(error));
      assert.match(
        error.message,
        new RegExp(`^GET ${server.url}/v1/.* with text/html, "${title}" is no answer of Berth`),
      );
    }
  });

  test('with JSON that is no problem of Berth is not taken for a refusal', async () => {
    const server = await serving(json(404, { message: 'no route' }));
    const error = await rejection(server.client().session('x').get());
    assert.ok(error instanceof NotBerth);
    assert.equal(error.status, 404);
  });

  test('with a redirect to another host gets no second request, and the other host none', async () => {
    const other = await serving(json(200, session('x')));
    const server = await serving(
      (response) => void response.writeHead(302, { location: `${other.url}/v1/x?secret=1` }).end(),
    );
    const error = await rejection(server.client().session('x').get());
    assert.ok(error instanceof NotBerth);
    assert.match(error.message, new RegExp(`redirect to ${other.url}/v1/x, which is not followed`));
    assert.deepEqual([server.seen.length, other.seen.length], [1, 0]);
  });

  test('is given up soon where nothing has ever answered', async () => {
    const server = await serving(hang);
    await server.close();
    const error = await rejection(server.client().session('x').get());
    assert.ok(error instanceof ConnectionLost, inspect(error));
    assert.match(error.message, /ECONNREFUSED/);
    assert.equal(error.sent, false);
  });

  test('whose own fetch says that nothing was sent is not said to have been sent', async () => {
    for (const sent of [false, undefined]) {
      const fetch = () => Promise.reject(Object.assign(new Error('no connection was free'), { sent }));
      const error = await rejection(
        new Berth({ server: 'http://localhost', token: TOKEN, fetch, deadlineMs: 1 }).session('x').get(),
      );
      assert.ok(error.cause instanceof ConnectionLost, inspect(error));
      assert.equal(error.cause.sent, sent !== false);
    }
  });
});

describe('a server that goes silent', () => {
  test('before its answer is asked again', async () => {
    const clock = new LeapingClock();
    const silent: Answerer = () => void setImmediate(() => clock.end(1_000));
    const server = await serving(silent, json(200, session('notes')));
    const client = server.client({ clock, timing: { ...QUICK, attemptMs: 1_000 } });
    assert.equal((await client.session('notes').get()).metadata.name, 'notes');
    assert.equal(server.seen.length, 2);
  });

  test('in the middle of its answer is asked again', async () => {
    const clock = new LeapingClock();
    const half: Answerer = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"metadata"');
    };
    const server = await serving(half, json(200, session('notes')));
    const client = server.client({ clock, timing: { ...QUICK, silenceMs: 1_000 } });
    const got = client.session('notes').get();
    await eventually(() => clock.end(1_000), { what: 'the client waits for the rest' });
    assert.equal((await got).metadata.name, 'notes');
    assert.equal(server.seen.length, 2);
  });
});

describe('an abort', () => {
  const reason = new Error('enough');
  const waits: Record<string, [Answerer, Partial<typeof QUICK>]> = {
    'before the answer': [hang, {}],
    'in the middle of the answer': [
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('{');
      },
      {},
    ],
    'between two tries': [problem(503, 'Overloaded'), { baseMs: 60_000, maxMs: 60_000 }],
    'while the server asks for patience': [problem(429, 'CallerLimit', { 'retry-after': '30' }), {}],
  };
  for (const [when, [answer, timing]] of Object.entries(waits)) {
    test(`${when} rejects with the reason of the signal and leaves no connection in use`, async () => {
      const control = new AbortController();
      const server = await serving((response, seen) => {
        answer(response, seen);
        setImmediate(() => control.abort(reason));
      });
      const client = server.client({ timing: { ...QUICK, ...timing } });
      assert.equal(await rejection(client.session('x').get({ signal: control.signal })), reason);
      assert.equal(server.seen.length, 1);
    });
  }

  test('closes the connection that waits for an answer', async () => {
    const control = new AbortController();
    const server = await serving(() => control.abort(reason));
    await rejection(server.client().session('x').get({ signal: control.signal }));
    await eventually(() => server.openSockets === 0, { what: 'the connection is closed' });
  });

  test('before the call sends nothing; while the token is fetched neither', async () => {
    const server = await serving(json(200, session('x')));
    assert.equal(
      await rejection(
        server
          .client()
          .session('x')
          .get({ signal: AbortSignal.abort(reason) }),
      ),
      reason,
    );
    const control = new AbortController();
    const token = () => {
      setImmediate(() => control.abort(reason));
      return new Promise<string>(() => {});
    };
    assert.equal(await rejection(server.client({ token }).session('x').get({ signal: control.signal })), reason);
    assert.equal(server.seen.length, 0);
  });
});

describe('a DELETE whose answer was lost', () => {
  test('has succeeded where the repeat finds nothing, or another object of the name', async () => {
    for (const after of [problem(404, 'NotFound'), problem(409, 'UIDMismatch')]) {
      const server = await serving(cut, after);
      await server.client().session('notes').delete();
      assert.equal(server.seen.length, 2);
    }
  });

  test('is not taken for one of a session that was never there, also after a try that the server did not take', async () => {
    for (const before of [[], [problem(429, 'CallerLimit')]]) {
      const server = await serving(...before, problem(404, 'NotFound'));
      assert.ok((await rejection(server.client().session('notes').delete())) instanceof problems.NotFound);
    }
  });
});

describe('a token', () => {
  const bearer = ({ seen }: Misbehaving) => seen.map(({ headers }) => headers.authorization);

  test('in a file is read for each request, also after a 401', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-token-'));
    const path = join(folder, 'token');
    writeFileSync(path, 'old\n');
    const replace: Answerer = (response, seen) => {
      writeFileSync(path, 'new\n');
      problem(401, 'Unauthenticated')(response, seen);
    };
    const server = await serving(json(200, session('x')), replace, json(200, session('x')));
    const client = server.client({ token: { file: path } });
    await client.session('x').get();
    await client.session('x').get();
    assert.deepEqual(bearer(server), ['Bearer old', 'Bearer old', 'Bearer new']);
    rmSync(folder, { recursive: true });
    const error = await rejection(client.session('x').get());
    assert.ok(error instanceof ConfigurationError);
    assert.match(error.message, /token file .*token cannot be read: ENOENT/);
  });

  test('that is refused again is said to have expired, and from where it is', async () => {
    const claims = Buffer.from(JSON.stringify({ exp: 1_700_000_000 })).toString('base64url');
    const server = await serving(problem(401, 'Unauthenticated'));
    const error = await rejection(
      server
        .client({ token: () => `e30.${claims}.sig` })
        .session('x')
        .get(),
    );
    assert.ok(error instanceof problems.Unauthenticated);
    assert.match(error.message, /It is from the function `token`, and expired at 2023-11-14T22:13:20\.000Z\.$/);
    assert.equal(server.seen.length, 2);
    const plain = await rejection(server.client().session('x').get());
    assert.match(plain.message, /It is from the token\.$/);
  });

  test('is in no text of an error and not in what is shown of a client', async () => {
    const server = await serving(problem(401, 'Unauthenticated'), page(200, 'x'), cut);
    const client = server.client({ deadlineMs: 50, clock: new LeapingClock() });
    const errors: unknown[] = [];
    for (let n = 0; n < 3; n++) errors.push(await rejection(client.session('x').get()));
    errors.push(
      await rejection(
        server
          .client({ token: `${TOKEN}\nx` })
          .session('x')
          .get(),
      ),
    );
    errors.push(
      await rejection(
        server
          .client({ token: () => `${TOKEN} x` })
          .session('x')
          .get(),
      ),
    );
    assert.doesNotMatch(
      inspect([errors, client, client.session('x')], { depth: 20, showHidden: true }),
      new RegExp(TOKEN),
    );
  });

  test('from a function that throws fails the call with the function’s error as its cause', async () => {
    const server = await serving(hang);
    const cause = new Error('no network');
    const error = await rejection(
      server
        .client({ token: () => Promise.reject(cause) })
        .session('x')
        .get(),
    );
    assert.ok(error instanceof ConfigurationError);
    assert.equal(error.cause, cause);
    assert.equal(server.seen.length, 0);
  });
});
