import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { EventRecorder, PAUSE_MS } from '../../../../controller/runtime/event-recorder.ts';
import type { Event } from '../../../../core/kube/builtin.ts';
import { silentLogger } from '../../../../core/system.ts';
import { eventually } from '../../../support/eventually.ts';
import { refuse } from '../../../support/kube-server.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { serverAndClient } from '../../kube/support.ts';

const SUBJECT = { apiVersion: 'berth.dev/v1alpha1', kind: 'Session', namespace: 'ns', name: 'notes', uid: 'u1' };

async function recording(t: TestContext) {
  const { server, client } = await serverAndClient(t);
  const clock = new VirtualClock();
  const recorder = new EventRecorder({ api: client, clock, log: silentLogger, component: 'berth-controller' });
  const stored = () => [...server.objects.values()] as unknown as Event[];
  /** Lets the pause of the recorded events pass, and resolves when so many requests have been made. */
  const requests = async (count: number) => {
    await clock.advance(PAUSE_MS);
    await eventually(() => server.requests.length === count, { what: `${count} requests` });
  };
  return { server, client, clock, recorder, stored, requests };
}

describe('event recorder', () => {
  test('an event has what kubectl shows of it', async (t) => {
    const { server, recorder, stored } = await recording(t);
    recorder.record(SUBJECT, 'Warning', 'ImageNotFound', 'image x cannot be pulled');
    await recorder.stop(10_000);
    const [event] = stored();
    assert.match(event?.metadata.name ?? '', /^notes\.[0-9a-f]{16}$/);
    assert.equal(server.requests[0]?.path, '/api/v1/namespaces/ns/events');
    assert.deepEqual(
      { ...event, metadata: undefined },
      {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: undefined,
        involvedObject: SUBJECT,
        type: 'Warning',
        reason: 'ImageNotFound',
        message: 'image x cannot be pulled',
        count: 1,
        firstTimestamp: '2030-01-01T00:00:00Z',
        lastTimestamp: '2030-01-01T00:00:00Z',
        source: { component: 'berth-controller' },
        reportingComponent: 'berth-controller',
      },
    );
  });

  test('the same again within ten minutes raises the count of the one before', async (t) => {
    const { server, clock, recorder, stored, requests } = await recording(t);
    recorder.record(SUBJECT, 'Normal', 'Suspended', 'idle');
    await requests(1);
    await clock.advance(9 * 60_000);
    recorder.record(SUBJECT, 'Normal', 'Suspended', 'idle');
    await requests(2);
    recorder.record(SUBJECT, 'Normal', 'Suspended', 'asked to');
    recorder.record({ ...SUBJECT, uid: 'u2' }, 'Normal', 'Suspended', 'idle');
    await recorder.stop(10_000);
    assert.deepEqual(
      server.requests.map(({ method }) => method),
      ['POST', 'PATCH', 'POST', 'POST'],
    );
    assert.deepEqual(
      stored()
        .map(({ count }) => count)
        .sort(),
      [1, 1, 2],
    );
    const [first] = stored();
    assert.deepEqual([first?.firstTimestamp, first?.lastTimestamp], ['2030-01-01T00:00:00Z', '2030-01-01T00:09:00Z']);
  });

  test('events leave the server to the writes that follow what they tell of, each of them for the whole pause', async (t) => {
    const { server, clock, recorder, requests } = await recording(t);
    const answers: (() => void)[] = [];
    server.intercept = (_request, response) => {
      answers.push(() => refuse(response, 403, 'Forbidden', 'no'));
      return true;
    };
    recorder.record(SUBJECT, 'Normal', 'PodClaimed', 'a');
    await clock.advance(PAUSE_MS - 1);
    assert.deepEqual([server.requests.length, clock.pending], [0, 1]);
    await requests(1);
    // This one comes while the first is written.
    recorder.record(SUBJECT, 'Normal', 'PodClaimed', 'b');
    answers[0]?.();
    await eventually(() => recorder.dropped === 1 && clock.pending === 1, { what: 'the pause of the second' });
    await clock.advance(PAUSE_MS - 1);
    assert.equal(server.requests.length, 1);
    await requests(2);
    answers[1]?.();
    await recorder.stop(10_000);
    assert.equal(recorder.dropped, 2);
  });

  test('many of the same at once are one request', async (t) => {
    const { server, recorder, stored } = await recording(t);
    for (let i = 0; i < 100; i++) recorder.record(SUBJECT, 'Normal', 'Suspended', 'idle');
    await recorder.stop(10_000);
    assert.deepEqual([server.requests.length, stored()[0]?.count, recorder.dropped], [1, 100, 0]);
  });

  test('a successor that knows of nothing goes on counting the event that is there', async (t) => {
    const { client, clock, recorder, stored } = await recording(t);
    recorder.record(SUBJECT, 'Normal', 'Suspended', 'idle');
    await recorder.stop(10_000);
    const successor = new EventRecorder({ api: client, clock, log: silentLogger, component: 'berth-controller' });
    successor.record(SUBJECT, 'Normal', 'Suspended', 'idle');
    await successor.stop(10_000);
    assert.deepEqual(
      stored().map(({ count }) => count),
      [2],
    );
  });

  test('an event that the server has dropped meanwhile is written anew', async (t) => {
    const { server, recorder, stored, requests } = await recording(t);
    recorder.record(SUBJECT, 'Normal', 'Suspended', 'idle');
    await requests(1);
    server.objects.clear();
    recorder.record(SUBJECT, 'Normal', 'Suspended', 'idle');
    await recorder.stop(10_000);
    assert.deepEqual(
      stored().map(({ count }) => count),
      [1],
    );
  });

  test('an object cannot flood the server, others go through, and its budget is refilled', async (t) => {
    const { clock, recorder, stored, requests } = await recording(t);
    for (let i = 0; i < 100; i++) recorder.record(SUBJECT, 'Warning', 'Odd', `number ${i}`);
    recorder.record({ ...SUBJECT, uid: 'u2' }, 'Warning', 'Odd', 'one of another');
    await requests(26);
    await eventually(() => stored().length === 26);
    assert.equal(recorder.dropped, 75);
    await clock.advance(30_000);
    recorder.record(SUBJECT, 'Warning', 'Odd', 'later');
    recorder.record(SUBJECT, 'Warning', 'Odd', 'later still');
    await recorder.stop(10_000);
    assert.equal(stored().length, 27);
  });

  test('a refused event is dropped without a word to the caller and the next one is written', async (t) => {
    const { server, recorder, stored } = await recording(t);
    server.intercept = ({ body }, response) => {
      const bad = body.includes('"Bad"');
      if (bad) refuse(response, 403, 'Forbidden', 'the namespace is being terminated');
      return bad;
    };
    recorder.record(SUBJECT, 'Normal', 'Bad', 'no');
    recorder.record(SUBJECT, 'Normal', 'Good', 'yes');
    await recorder.stop(10_000);
    assert.deepEqual(
      stored().map(({ reason }) => reason),
      ['Good'],
    );
    assert.equal(recorder.dropped, 1);
  });

  test('a stop waits no longer than its deadline for a server that does not answer', async (t) => {
    const { server, clock, recorder, requests } = await recording(t);
    server.intercept = () => true;
    recorder.record(SUBJECT, 'Normal', 'A', 'a');
    recorder.record(SUBJECT, 'Normal', 'B', 'b');
    await requests(1);
    const stop = recorder.stop(2_000);
    await clock.advance(2_000);
    await stop;
    recorder.record(SUBJECT, 'Normal', 'C', 'c');
    assert.deepEqual([server.requests.length, recorder.dropped], [1, 3]);
  });

  test('an event of a cluster-scoped object is where kubectl looks, and a long message is cut', async (t) => {
    const { server, recorder, stored } = await recording(t);
    recorder.record({ apiVersion: 'v1', kind: 'Node', name: 'n'.repeat(253) }, 'Normal', 'Seen', 'x'.repeat(5_000));
    await recorder.stop(10_000);
    assert.equal(server.requests[0]?.path, '/api/v1/namespaces/default/events');
    assert.ok((stored()[0]?.metadata.name.length ?? 999) <= 253);
    assert.equal(stored()[0]?.message.length, 1_000);
  });
});
