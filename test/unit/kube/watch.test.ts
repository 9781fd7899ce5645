import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { isExpired, TransportError } from '../../../core/kube/errors.ts';
import { pods } from '../../../core/kube/resources.ts';
import type { KubeObject, WatchEvent } from '../../../core/kube/types.ts';
import { decodeWatch } from '../../../core/kube/watch.ts';
import { serverAndClient } from './support.ts';

async function* pieces(bytes: Buffer, cuts: number[]): AsyncGenerator<Buffer> {
  const at = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b);
  for (let i = 1; i < at.length; i++) yield bytes.subarray(at[i - 1], at[i]);
}

async function decoded(bytes: Buffer | string, cuts: number[] = []): Promise<WatchEvent<KubeObject>[]> {
  const events: WatchEvent<KubeObject>[] = [];
  for await (const event of decodeWatch(pieces(Buffer.from(bytes), cuts))) events.push(event);
  return events;
}

describe('watch decoding', () => {
  test('any split of the bytes, also within a character, gives the same events', async () => {
    const events = fc.array(
      fc.record({
        type: fc.constantFrom('ADDED', 'MODIFIED', 'DELETED'),
        object: fc.record({ metadata: fc.record({ name: fc.string({ unit: 'grapheme' }) }), data: fc.json() }),
      }),
      { maxLength: 5 },
    );
    await fc.assert(
      fc.asyncProperty(events, fc.array(fc.nat(5_000), { maxLength: 40 }), async (made, cuts) => {
        const sent = JSON.parse(JSON.stringify(made));
        const bytes = Buffer.from(made.map((event) => `${JSON.stringify(event)}\n`).join(''));
        assert.deepEqual(await decoded(bytes, cuts), sent);
      }),
      { numRuns: 200 },
    );
  });

  test('a bookmark gives its version alone', async () => {
    const line = '{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"77"}}}\n';
    assert.deepEqual(await decoded(line), [{ type: 'BOOKMARK', resourceVersion: '77' }]);
  });

  test('an event torn by the end of the connection is not given out', async () => {
    assert.deepEqual(await decoded('{"type":"ADDED","object":{"metadata":{}}}'), []);
  });

  test('an ERROR event of 410 is thrown as Expired', async () => {
    const line = '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n';
    await assert.rejects(decoded(line), (error) => isExpired(error) && (error as Error).message === 'too old');
  });

  test('a line that is no event is a TransportError', async () => {
    await assert.rejects(decoded('<html>\n'), TransportError);
    await assert.rejects(decoded('{"type":"NEW","object":{}}\n'), TransportError);
  });

  test('a line without end is refused before it fills memory', async () => {
    async function* endless() {
      for (;;) yield Buffer.alloc(1024 * 1024, 'x');
    }
    await assert.rejects(decodeWatch(endless()).next(), /larger than/);
  });
});

describe('watch of a server', () => {
  test('asks for bookmarks, gives the events after a version and ends when the server ends it', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.put('/api/v1/namespaces/ns/pods', { metadata: { name: 'a' } });
    server.put('/api/v1/namespaces/ns/pods', { metadata: { name: 'b' } });
    const signal = new AbortController().signal;
    const seen: string[] = [];
    for await (const event of client.watch(pods, {
      resourceVersion: '101',
      timeoutSeconds: 9,
      labelSelector: 'x=y',
      signal,
    })) {
      seen.push(event.type === 'BOOKMARK' ? event.resourceVersion : event.object.metadata.name);
      if (seen.length === 1) server.bookmark();
      else server.endWatches();
    }
    assert.deepEqual(seen, ['b', '102']);
    assert.equal(
      server.requests[0]?.query.toString(),
      'watch=true&allowWatchBookmarks=true&labelSelector=x%3Dy&resourceVersion=101&timeoutSeconds=9',
    );
  });

  test('a version that is no longer in the history is refused as Expired', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.put('/api/v1/namespaces/ns/pods', { metadata: { name: 'a' } });
    server.expire();
    const signal = new AbortController().signal;
    await assert.rejects(client.watch(pods, { resourceVersion: '100', signal }).next(), isExpired);
  });

  test('a cut connection is a TransportError and an abort gives its reason', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.put('/api/v1/namespaces/ns/pods', { metadata: { name: 'a' } });
    const stop = new AbortController();
    const first = client.watch(pods, { resourceVersion: '100', signal: stop.signal });
    await first.next();
    server.cut();
    await assert.rejects(first.next(), TransportError);
    const second = client.watch(pods, { resourceVersion: '100', signal: stop.signal });
    await second.next();
    stop.abort(new Error('enough'));
    await assert.rejects(second.next(), /enough/);
  });
});
