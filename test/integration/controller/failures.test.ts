import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { pods } from '../../../core/kube/resources.ts';
import type { KubeObject, Resource, Stored } from '../../../core/kube/types.ts';
import { sessionclasses, sessions, turns } from '../../../core/resources/kinds.ts';
import { LABEL_SESSION } from '../../../core/resources/names.ts';
import { eventually } from '../../support/eventually.ts';
import { type Installation, ONE_LEADER, pythonAgent, RUNNER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const SCRATCH = mkdtempSync(join(tmpdir(), 'berth-failures-'));
afterAll(() => rmSync(SCRATCH, { recursive: true, maxRetries: 10 }));

/** Sleeps in its first attempt, after it has changed its state; says what it finds of the state, and which attempt it is. */
const AGENT = pythonAgent(`
found = sorted(os.listdir(state))
open(state + '/' + request['turn']['name'] + '-' + str(request['turn']['attempt']), 'w').write('x')
print('attempt', request['turn']['attempt'])
sys.stdout.flush()
if request['input'] == 'slow' and request['turn']['attempt'] == 1:
    open('${SCRATCH}/' + request['turn']['name'], 'w').close()
    time.sleep(600)
answer({'attempt': request['turn']['attempt'], 'found': found})
`);

/** Program of the image `berth.local/late`, which is there once its test has written it. */
const LATE = join(SCRATCH, 'late');

/** Follows one session’s pods or turns from now on: `seen` grows by what `tell` says of every change, with its version. */
async function follow<T extends KubeObject>(
  { client }: Installation,
  resource: Resource<T>,
  selector: { labelSelector: string } | { fieldSelector: string },
  tell: (type: string, object: Stored<T>) => string | undefined,
): Promise<{ seen: { what: string; version: number }[]; stop(): Promise<void> }> {
  const stop = new AbortController();
  const { metadata } = await client.list(resource, selector);
  const options = { ...selector, resourceVersion: metadata.resourceVersion, signal: stop.signal };
  const seen: { what: string; version: number }[] = [];
  const done = (async () => {
    for await (const event of client.watch(resource, options)) {
      if (event.type === 'BOOKMARK') continue;
      const what = tell(event.type, event.object);
      if (what !== undefined) seen.push({ what, version: Number(event.object.metadata.resourceVersion) });
    }
  })().catch((error: unknown) => {
    if (!stop.signal.aborted) seen.push({ what: `the watch broke: ${error}`, version: 0 });
  });
  return {
    seen,
    stop: () => {
      stop.abort();
      return done;
    },
  };
}

describe('failures that Kubernetes reports', () => {
  const images = {
    'berth.local/late': { entrypoint: [LATE] },
    'berth.local/never': { entrypoint: [join(SCRATCH, 'never')] },
  };
  const cluster = installed({ BERTH_NODE_GRACE: '1s', ...ONE_LEADER }, { controller: true, images });

  /** The session's pod, once the agent of the slow turn has said and written what it does. */
  async function slowTurn(name: string, spec: object = {}) {
    await cluster.create(name, { agent: AGENT });
    await cluster.turn(name, `${name}-1`, 'quick');
    await cluster.ended(`${name}-1`);
    await cluster.turn(name, `${name}-2`, 'slow', spec);
    await eventually(() => existsSync(join(SCRATCH, `${name}-2`)), { what: 'the slow turn is at work' });
    await cluster.until(name, 'running', ({ status }) => status?.currentTurn === `${name}-2`);
    const [pod] = await cluster.podsOf(name);
    assert.ok(pod);
    return pod;
  }

  test.concurrent('a container over its memory limit gives OOMKilled with what to do, and the session goes on', async () => {
    const pod = await slowTurn('oom', { retry: { maxAttempts: 3 } });
    const terminated = { exitCode: 137, reason: 'OOMKilled' };
    await cluster.report(pod, {
      phase: 'Failed',
      containerStatuses: [
        { name: 'session', ready: false, restartCount: 0, image: '', imageID: '', state: { terminated } },
      ],
    });
    const { status } = await cluster.ended('oom-2');
    assert.equal(status?.error?.code, 'OOMKilled', JSON.stringify(status));
    assert.match(status?.error?.message ?? '', /1Gi.*resources\.limits\.memory/);
    await cluster.event('oom', 'OOMKilled');
    await cluster.turn('oom', 'oom-3', 'quick');
    assert.deepEqual((await cluster.ended('oom-3')).status?.output, { attempt: 1, found: ['oom-1-1'] });
  });

  test.concurrent('a drained pod gives Evicted, with the log and the state of what was stopped', async () => {
    await cluster.evict(await slowTurn('drained'));
    const { status } = await cluster.ended('drained-2');
    assert.equal(status?.error?.code, 'Evicted', JSON.stringify(status));
    assert.match(status?.log?.inline ?? '', /attempt 1/);
    await cluster.turn('drained', 'drained-3', 'quick');
    const next = await cluster.ended('drained-3');
    assert.deepEqual(next.status?.output, { attempt: 1, found: ['drained-1-1', 'drained-2-1'] });
  });

  test.concurrent('a turn that may run twice is begun again after a drain, from the state that was stored before', async () => {
    await cluster.evict(await slowTurn('again', { retry: { maxAttempts: 2 } }));
    const { status } = await cluster.ended('again-2');
    assert.equal(status?.phase, 'Succeeded', JSON.stringify(status));
    assert.deepEqual([status.output, status.attempt], [{ attempt: 2, found: ['again-1-1'] }, 2]);
    const { status: session } = await cluster.until('again', 'counted', (one) => one.status?.turns?.total === 2);
    assert.equal(session?.turns?.failed, 0);
  });

  test('a quota without room makes the session wait without a slot, then it goes on', async () => {
    let isFull = true;
    const message = 'pods "s-x" is forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4';
    cluster.server.faults.failNext(
      ({ verb, resource }) => isFull && verb === 'create' && resource === 'pods',
      { code: 403, reason: 'Forbidden', message },
      1000,
    );
    await cluster.create('quota', { agent: AGENT });
    const { status } = await cluster.until('quota', 'waiting', (one) => one.status?.queue?.reason === 'QuotaExceeded');
    assert.deepEqual([status?.podName, status?.phase], [undefined, 'Queued']);
    await cluster.event('quota', 'QuotaExceeded');
    isFull = false;
    const ready = await cluster.until('quota', 'ready', (one) => one.status?.phase === 'Ready');
    assert.deepEqual([ready.status?.queue, ready.status?.startFailures], [undefined, undefined]);
  });

  test('a quota without room for the first turn is told, and a session that is changed once there is room starts', async () => {
    // As with a real quota, a creation that is repeated is refused although its turn exists.
    let room = 0;
    const message =
      'turns.berth.dev "x" is forbidden: exceeded quota: team, requested: count/turns.berth.dev=1, used: count/turns.berth.dev=9, limited: count/turns.berth.dev=9';
    cluster.server.faults.failNext(
      ({ verb, resource }) => verb === 'create' && resource === 'turns' && room-- <= 0,
      { code: 403, reason: 'Forbidden', message },
      1000,
    );
    await cluster.create('no-room', { agent: AGENT, turns: 'One', input: null });
    const { status } = await cluster.until('no-room', 'told', ({ status }) =>
      Boolean(status?.conditions?.some(({ reason }) => reason === 'TurnQuotaExceeded')),
    );
    assert.equal(status?.podName, undefined);
    await cluster.event('no-room', 'TurnQuotaExceeded');
    room = 1;
    // It would start by itself, too, within 30 s.
    await cluster.patch('no-room', { priority: 1 });
    await cluster.until('no-room', 'finished', (one) => one.status?.phase === 'Finished');
    room = Number.POSITIVE_INFINITY;
  });

  for (const [name, what, message] of [
    [
      'account',
      'a namespace whose service account is not there yet',
      'pods "s-x" is forbidden: error looking up service account default/default: serviceaccount "default" not found',
    ],
    [
      'rights',
      'an API server that has not read its roles yet',
      'pods is forbidden: User "system:serviceaccount:berth-system:berth-controller" cannot create resource "pods" in API group "" in the namespace "default"',
    ],
    ['plugin', 'an admission plugin that is not ready yet', 'pods "s-x" is forbidden: not yet ready to handle request'],
    [
      'counted',
      'a quota that nobody has counted yet',
      'pods "s-x" is forbidden: status unknown for quota: team, resources: pods',
    ],
  ] as const) {
    test(`${what} keeps nobody from running`, async () => {
      cluster.server.faults.failNext(
        ({ verb, resource, namespace }) => verb === 'create' && resource === 'pods' && namespace === 'default',
        { code: 403, reason: 'Forbidden', message },
        2,
      );
      await cluster.create(name, { agent: AGENT });
      await cluster.turn(name, `${name}-1`, 'quick');
      const { status } = await cluster.ended(`${name}-1`);
      assert.equal(status?.phase, 'Succeeded', JSON.stringify(status));
    });
  }

  describe.concurrent('a container that its node cannot start', () => {
    beforeAll(async () => {
      const { spec } = await cluster.client.get(sessionclasses, { name: 'default' });
      for (const name of ['late', 'never']) await cluster.createClass(name, { ...spec, image: `berth.local/${name}` });
    });

    test('is tried again in another pod', async () => {
      await cluster.create('late', { agent: AGENT, class: 'late' });
      await cluster.turn('late', 'late-1', 'quick');
      const { status } = await cluster.until('late', 'counted', (one) => one.status?.startFailures?.count === 1);
      assert.match(status?.startFailures?.message ?? '', /exit code 128 \(StartError: .*before it took a turn/);
      writeFileSync(LATE, `#!/bin/sh\nexec ${RUNNER.join(' ')}\n`, { mode: 0o755 });
      const ended = (await cluster.ended('late-1')).status;
      assert.equal(ended?.phase, 'Succeeded', JSON.stringify(ended));
    });

    test('in three pods ends the turns that wait', async () => {
      await cluster.create('never', { agent: AGENT, class: 'never' });
      await cluster.turn('never', 'never-1', 'quick');
      const { status } = await cluster.ended('never-1');
      assert.equal(status?.error?.code, 'StartFailed', JSON.stringify(status));
      assert.match(status?.error?.message ?? '', /exit code 128 .*StartError: .*is the runner in the image/);
      const session = await cluster.client.get(sessions, { namespace: 'default', name: 'never' });
      assert.equal(session.status?.incarnation, 3);
    });
  });

  test('rights that never come end the turns after timeouts.start, in the API server’s own words', async () => {
    const message =
      'pods is forbidden: User "berth" cannot create resource "pods" in API group "" in the namespace "x"';
    let isRefused = true;
    cluster.server.faults.failNext(
      ({ verb, resource, namespace }) =>
        isRefused && verb === 'create' && resource === 'pods' && namespace === 'default',
      { code: 403, reason: 'Forbidden', message },
      1000,
    );
    await cluster.create('no-rights', { agent: AGENT, timeouts: { start: '2s' } });
    await cluster.turn('no-rights', 'no-rights-1', 'quick');
    const { status } = await cluster.ended('no-rights-1');
    isRefused = false;
    assert.equal(status?.error?.code, 'StartFailed', JSON.stringify(status));
    assert.match(
      status?.error?.message ?? '',
      /The pod cannot be created: pods is forbidden: User "berth" cannot create/,
    );
  });

  test.concurrent('a pod of the name that is not Berth’s is not taken for the session’s', async () => {
    const held = await cluster.create('squatted', { agent: AGENT, suspend: true });
    const name = `s-${held.metadata.uid}-1`;
    const stranger = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: { containers: [{ name: 'session', image: 'no.such/image:1' }] },
    };
    await cluster.client.create(pods, stranger);
    await cluster.turn('squatted', 'squatted-1', 'quick');
    // A session that starts before its turn is known tries the next name for that.
    await cluster.turnUntil('squatted-1', 'is held', ({ status }) => status?.index === 1);
    await cluster.patch('squatted', { suspend: false });
    const { status } = await cluster.ended('squatted-1');
    assert.equal(status?.error?.code, 'PodForbidden', JSON.stringify(status));
    const there = await cluster.client.get(pods, { namespace: 'default', name });
    assert.equal(there.metadata.deletionTimestamp, undefined);
  });

  test.concurrent('turns of a session that was deleted without them do not run in the next one of its name', async () => {
    await cluster.create('replaced', { agent: AGENT, suspend: true });
    await cluster.turn('replaced', 'replaced-1', 'quick');
    await cluster.turnUntil('replaced-1', 'queued', ({ status }) => status?.index === 1);
    const ref = { namespace: 'default', name: 'replaced' };
    await cluster.client.delete(sessions, ref, { propagationPolicy: 'Orphan' });
    await eventually(
      () =>
        cluster.client.get(sessions, ref).then(
          () => false,
          () => true,
        ),
      { what: 'the session gone' },
    );
    await cluster.create('replaced', { agent: AGENT });
    assert.equal((await cluster.ended('replaced-1')).status?.error?.code, 'SessionReplaced');
    await cluster.turn('replaced', 'replaced-2', 'quick');
    assert.deepEqual((await cluster.ended('replaced-2')).status?.output, { attempt: 1, found: [] });
  });

  test('a resting session leaves a cordoned node, and its next turn finds its state', async () => {
    await cluster.create('moving', { agent: AGENT });
    await cluster.turn('moving', 'moving-1', 'quick');
    await cluster.ended('moving-1');
    await cluster.cordon(true);
    await cluster.until('moving', 'suspended', ({ status }) => status?.phase === 'Suspended');
    await cluster.cordon(false);
    await cluster.turn('moving', 'moving-2', 'quick');
    assert.deepEqual((await cluster.ended('moving-2')).status?.output, { attempt: 1, found: ['moving-1-1'] });
  });

  test('a pod on a node that does not answer is given up after the grace, and no pod replaces it before', async () => {
    const pod = await slowTurn('dead', { retry: { maxAttempts: 2 } });
    const came = await follow(cluster, pods, { labelSelector: `${LABEL_SESSION}=dead` }, (type, { metadata }) =>
      type === 'MODIFIED' ? undefined : `${type} ${metadata.uid}`,
    );
    // Queued again it stays for a second only, then it is the next pod's: a look now and then might miss that.
    const became = await follow(cluster, turns, { fieldSelector: 'spec.session=dead' }, (_type, { status }) => {
      const reason = status?.conditions?.find(({ type }) => type === 'Running')?.reason;
      return status?.phase === 'Queued' ? `Queued ${reason}` : undefined;
    });
    await cluster.cutOff(true);
    await eventually(async () => (await cluster.podsOf('dead'))[0]?.metadata.deletionTimestamp, {
      what: 'its deletion',
    });
    // The pod is gone once its own grace period of 10 s and that of the node are over.
    const lost = await eventually(() => became.seen[0], { what: 'dead-2 is lost' });
    assert.equal(lost.what, 'Queued PodLost');
    await cluster.cutOff(false);
    const { status } = await cluster.ended('dead-2');
    assert.deepEqual([status?.output, status?.attempt], [{ attempt: 2, found: ['dead-1-1'] }, 2]);
    await eventually(() => came.seen.length >= 2, { what: 'its pods came and went' });
    await Promise.all([came.stop(), became.stop()]);
    const [first, second] = came.seen;
    assert.equal(first?.what, `DELETED ${pod.metadata.uid}`);
    assert.match(second?.what ?? '', /^ADDED /);
    assert.ok(Number(first?.version) < lost.version, 'the turn counts as running until its pod is gone');
  });
});
