import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { caller } from '../support/caller.ts';
import { type Any, makeNamespace } from '../support/cluster.ts';
import { type PortForward, portForward } from '../support/port-forward.ts';

describe('the HTTP API', () => {
  let forward: PortForward;
  let url = '';

  beforeAll(async () => {
    forward = await portForward(80);
    url = `http://127.0.0.1:${forward.port}`;
  });
  afterAll(() => forward.end());

  async function call(method: string, path: string, token?: string, body?: unknown, headers = {}) {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(token ? { authorization: `Bearer ${token}` } : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: (text === '' ? undefined : JSON.parse(text)) as Any };
  }
  const agent = { command: ['sh', '-c', 'echo "hello $(cat)"'], input: 'Text', result: 'Text' };

  /** Asks again where the wait that the request allows was too short for the cluster. */
  const atEnd = (what: string, ask: () => ReturnType<typeof call>, phaseOf: (body: Any) => string | undefined) =>
    eventually(
      async () => {
        const answer = await ask();
        const isOver = answer.status >= 400 || ['Succeeded', 'Failed'].includes(phaseOf(answer.body) ?? '');
        return isOver ? answer : undefined;
      },
      { timeoutMs: 180_000, what },
    );

  test('a run is created, waited for and answered with its output', async (t) => {
    const namespace = await makeNamespace(t);
    const token = await caller(namespace, 'editor', 'edit');
    const path = `/v1/namespaces/${namespace}/runs?wait=60s`;
    const key = { 'idempotency-key': 'once' };
    const { status, body } = await atEnd(
      'the run’s end',
      () => call('POST', path, token, { spec: { agent, input: 'http' } }, key),
      ({ phase }) => phase,
    );
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.phase, 'Succeeded');
    assert.equal(body.output, 'hello http\n');
    assert.equal(body.session.spec.requester, `system:serviceaccount:${namespace}:editor`);
  });

  test('a repeated create with the same Idempotency-Key is one session, and its turn can be waited for', async (t) => {
    const namespace = await makeNamespace(t);
    const token = await caller(namespace, 'editor', 'edit');
    const sessions = `/v1/namespaces/${namespace}/sessions`;
    const key = { 'idempotency-key': 'once' };
    const first = await call('POST', sessions, token, { spec: { agent } }, key);
    const again = await call('POST', sessions, token, { spec: { agent } }, key);
    assert.equal(first.status, 201, JSON.stringify(first.body));
    assert.equal(again.body.metadata.uid, first.body.metadata.uid);
    const turns = `${sessions}/${first.body.metadata.name}/turns`;
    const made = await call('POST', turns, token, { spec: { input: 'again' } });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const done = await atEnd(
      'the turn’s end',
      () => call('GET', `${turns}/${made.body.metadata.name}?wait=60s`, token),
      ({ status }) => status?.phase,
    );
    assert.equal(done.body.status.phase, 'Succeeded', JSON.stringify(done.body.status));
  });

  test('the text and the events of a session are followed: those of a later turn come too, until the session is deleted', async (t) => {
    const namespace = await makeNamespace(t);
    const token = await caller(namespace, 'editor', 'edit');
    const sessions = `/v1/namespaces/${namespace}/sessions`;
    const hears = { ...agent, command: ['sh', '-c', 'echo "heard $(cat)" >&2'] };
    const path = `${sessions}/hears`;
    const made = await call('POST', sessions, token, { metadata: { name: 'hears' }, spec: { agent: hears } });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const headers = { authorization: `Bearer ${token}` };
    const follow = async (page: string) => {
      const answer = await fetch(`${url}${path}/${page}`, { headers, signal: AbortSignal.timeout(600_000) });
      assert.equal(answer.status, 200);
      const follower = { text: '', hasEnded: false, reading: Promise.resolve() };
      follower.reading = (async () => {
        for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) follower.text += piece;
      })().finally(() => {
        follower.hasEnded = true;
      });
      follower.reading.catch(() => {});
      return follower;
    };
    const printed = await follow('logs?follow');
    const stream = await follow('events?logs');
    for (const input of ['one', 'two']) {
      const turn = await call('POST', `${path}/turns`, token, { spec: { input } });
      assert.equal(turn.status, 201, JSON.stringify(turn.body));
      const line = { timeoutMs: 180_000, what: `the line of turn ${input}` };
      const isTold = () =>
        printed.text.includes(`heard ${input}\n`) &&
        stream.text.includes(`"text":"heard ${input}"`) &&
        [...stream.text.matchAll(/^event: turn\ndata: .*"phase":"Succeeded"/gm)].length >= (input === 'one' ? 1 : 2);
      await eventually(() => printed.hasEnded || stream.hasEnded || isTold(), line);
      for (const { hasEnded, reading, text } of [printed, stream]) {
        if (!hasEnded) continue;
        await reading;
        assert.fail(`it ended before the line of turn ${input}: ${JSON.stringify(text)}`);
      }
    }
    assert.equal((await call('DELETE', path, token)).status, 204);
    await Promise.all([printed.reading, stream.reading]);
    assert.equal(printed.text, 'heard one\nheard two\n');
    assert.match(stream.text, /event: deleted\ndata: \{"session":"hears","uid":"[^"]+"\}\n\n$/);
  });

  test('a request without a token, with one for another audience, or without the right is refused', async (t) => {
    const namespace = await makeNamespace(t);
    const sessions = `/v1/namespaces/${namespace}/sessions`;
    assert.equal((await call('GET', sessions)).status, 401);
    assert.equal((await call('GET', sessions, 'garbage')).status, 401);
    const elsewhere = await caller(namespace, 'elsewhere', 'edit', 'another');
    assert.equal((await call('GET', sessions, elsewhere)).status, 401);
    const nobody = await caller(namespace, 'nobody', undefined);
    const refused = await call('GET', sessions, nobody);
    assert.equal(refused.status, 403);
    assert.equal(refused.body.code, 'Forbidden');
    const viewer = await caller(namespace, 'viewer', 'view');
    assert.equal((await call('GET', sessions, viewer)).status, 200);
    assert.equal((await call('POST', sessions, viewer, { spec: { agent } })).status, 403);
  });
});
