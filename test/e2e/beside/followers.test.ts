import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { anySignal } from '../../../core/abort.ts';
import { eventually } from '../../support/eventually.ts';
import { caller } from '../support/caller.ts';
import { apply, ended, kubectl, makeNamespace, session, turn, until } from '../support/cluster.ts';
import { full, makeClass, pool } from '../support/pools.ts';
import { type PortForward, portForward } from '../support/port-forward.ts';

const NAMES = ['a', 'b'];

describe('those who follow sessions that start in the pods of a pool', () => {
  let forward: PortForward;
  beforeAll(async () => {
    forward = await portForward(80);
  });
  afterAll(() => forward.end());

  /** Follows the events of a session after the place `lastId`. */
  async function follow(token: string, namespace: string, name: string, lastId?: string) {
    const url = `http://127.0.0.1:${forward.port}/v1/namespaces/${namespace}/sessions/${name}/events?logs`;
    const stop = new AbortController();
    const headers = { authorization: `Bearer ${token}`, ...(lastId ? { 'last-event-id': lastId } : {}) };
    const answer = await fetch(url, { headers, signal: anySignal(stop.signal, AbortSignal.timeout(600_000)) });
    assert.equal(answer.status, 200);
    let text = '';
    const reading = (async () => {
      for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) text += piece;
    })().catch(() => {});
    /** Whole events; the last may not have come to its end. */
    const events = () => text.split('\n\n').slice(0, -1);
    return {
      lines: () => events().flatMap((event) => /^event: log\ndata: .*"text":"([^"]*)"/m.exec(event)?.[1] ?? []),
      /** Ends the connection; resolves to the place of the last event that has come whole. */
      async leave(): Promise<string> {
        stop.abort();
        await reading;
        return (
          events()
            .findLast((event) => event.startsWith('id: '))
            ?.slice(4)
            .split('\n')[0] ?? ''
        );
      },
    };
  }

  test('are told the lines of their own session, each once, also after they come back for its next pod', async (t) => {
    const namespace = await makeNamespace(t);
    const token = await caller(namespace, 'viewer', 'view');
    const ofClass = await makeClass(t, namespace);
    await apply(pool(namespace, 'warm', { class: ofClass, replicas: NAMES.length }));
    await full(namespace);
    const agent = { command: ['sh', '-c', 'echo "heard $(cat)" >&2'], input: 'Text', result: 'Text' };
    await apply(...NAMES.map((name) => session(namespace, name, { class: ofClass, agent })));
    const suspend = (name: string, suspend: boolean) =>
      kubectl(['patch', 'session', name, '-n', namespace, '--type=merge', '-p', JSON.stringify({ spec: { suspend } })]);

    const told = new Map<string, string[]>();
    const places = new Map<string, string>();
    for (const input of ['one', 'two']) {
      const followers = new Map<string, Awaited<ReturnType<typeof follow>>>();
      for (const name of NAMES) followers.set(name, await follow(token, namespace, name, places.get(name)));
      await apply(...NAMES.map((name) => turn(namespace, `${name}-${input}`, name, `${input} in ${name}`)));
      for (const [name, follower] of followers) {
        const { status } = await ended(namespace, `${name}-${input}`);
        assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
        const isTold = () => follower.lines().includes(`heard ${input} in ${name}`);
        await eventually(isTold, { timeoutMs: 60_000, what: `the line of turn ${name}-${input}` });
        places.set(name, await follower.leave());
        told.set(name, [...(told.get(name) ?? []), ...follower.lines()]);
        await suspend(name, true);
        await until(namespace, 'session', name, ({ status }) => status?.phase === 'Suspended');
        await suspend(name, false);
      }
    }
    for (const name of NAMES) assert.deepEqual(told.get(name), [`heard one in ${name}`, `heard two in ${name}`]);
  });
});
