import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { asEventStream } from '../../../../api/streams/event-stream.ts';
import type { Placed } from '../../../../core/follow/session-events.ts';
import { settled, VirtualClock } from '../../../support/virtual-clock.ts';

const event: Placed = { id: '1.2.3.4', event: { type: 'log', data: { session: 'notes', text: 'a line' } } };

describe('a stream of server-sent events', () => {
  /** A stream, what it has said so far, and the event that it waits for. */
  function open() {
    const clock = new VirtualClock();
    const stop = new AbortController();
    /** Reactions at the event that the stream waits for. */
    let reactions = 0;
    let asked = Promise.withResolvers<IteratorResult<Placed>>();
    let isReturned = false;
    const events: AsyncIterator<Placed> = {
      next: () => {
        asked = Promise.withResolvers();
        const { promise } = asked;
        const then = promise.then.bind(promise);
        reactions = 0;
        // biome-ignore lint/suspicious/noThenProperty: the test counts its calls
        promise.then = (...args) => {
          reactions += 1;
          return then(...args);
        };
        return promise;
      },
      return: async () => {
        isReturned = true;
        return { done: true, value: undefined };
      },
    };
    const said: string[] = [];
    const reading = (async () => {
      for await (const text of asEventStream(events, clock, stop.signal)) said.push(text);
    })();
    return {
      clock,
      stop,
      said,
      reading,
      reactions: () => reactions,
      asked: () => asked,
      isReturned: () => isReturned,
    };
  }

  test('says every 15 seconds that it is alive, and does not grow by that', async () => {
    const stream = open();
    await settled();
    const before = stream.reactions();
    await stream.clock.advance(150_000);
    assert.deepEqual(stream.said, [': berth\n\n', ...Array(10).fill(': alive\n\n')]);
    assert.equal(stream.reactions(), before);
    stream.asked().resolve({ done: false, value: event });
    await settled();
    assert.match(stream.said.at(-1) ?? '', /^id: 1\.2\.3\.4\nevent: log\ndata: .*\n\n$/);
    await stream.clock.advance(14_000);
    assert.equal(stream.said.length, 12, 'the time begins anew with an event');
    stream.asked().resolve({ done: true, value: undefined });
    await stream.reading;
    assert.deepEqual([stream.isReturned(), stream.clock.pending], [true, 0]);
  });

  test('ends without an error with its signal, and with any other error', async () => {
    const stopped = open();
    await stopped.clock.advance(20_000);
    stopped.stop.abort(new Error('enough'));
    stopped.asked().reject(new Error('enough'));
    await stopped.reading;
    const broken = open();
    await broken.clock.advance(20_000);
    broken.asked().reject(new Error('the cluster stays away'));
    await assert.rejects(broken.reading, /stays away/);
    for (const { isReturned, clock } of [stopped, broken]) assert.deepEqual([isReturned(), clock.pending], [true, 0]);
  });
});
