import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Links, type LinksOptions } from '../../../../controller/link/links.ts';
import { poolPodName } from '../../../../core/resources/names.ts';
import { silentLogger } from '../../../../core/system.ts';
import { PodRunner } from '../../../support/pod-runner.ts';
import { seededRandom } from '../../../support/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aPod } from '../../../support/world.ts';

const SESSION = '00000000-0000-4000-8000-000000000001';
const NAME = poolPodName('00000000-0000-4000-8000-00000000000a', 0);

/** The pod of a pool, as it is for the session with this uid; empty: for none. */
function aPoolPod(session: string) {
  const pod = aPod({ name: NAME, uid: 'pod-1' });
  pod.metadata.labels = {
    'berth.dev/session-uid': session,
    'berth.dev/session': 'notes',
    'berth.dev/incarnation': session ? '1' : '',
  };
  return pod;
}

/** Links with that of an unclaimed pod, whose runner has answered; or has not, where this leader has just created it. */
async function waiting(isCreated = false) {
  const clock = new VirtualClock();
  const random = seededRandom();
  const key = Buffer.alloc(32, 7);
  const links = new Links({
    api: new PodRunner(clock, random),
    ...{ clock, random, log: silentLogger, lingerMs: 3_600_000, attachesPerNode: 16, epoch: () => 5 },
    keys: { current: { id: 'k', key }, byId: new Map([['k', key]]) },
    onChange: () => {},
    onLaterEpoch: () => {},
    isWaitedFor: () => true,
  } as unknown as LinksOptions);
  const link = links.open(aPoolPod(''), { key: 'team/pool', uid: '', incarnation: 0 });
  link.open({ scheduled: !isCreated, running: !isCreated, fresh: isCreated });
  await clock.advance(500);
  assert.equal(link.view.phase, isCreated ? 'Opening' : 'Unbound');
  return { links, link, clock };
}

describe('no other leader can have sent anything to a runner that waits', () => {
  const claim = { key: 'team/notes', uid: SESSION, incarnation: 1 };

  test('whose pod this leader has claimed', async () => {
    const { links, link } = await waiting();
    links.claiming('pod-1', SESSION);
    links.assign('pod-1', claim);
    assert.deepEqual([link.session, link.view.fresh], [SESSION, true]);
  });

  test('whose pod this leader has claimed, where the watch shows the claim before its answer, or its answer is lost', async () => {
    const { links, link } = await waiting();
    links.claiming('pod-1', SESSION);
    // The next try of a claim whose answer was lost is refused: the pod has another version by then.
    links.claiming('pod-1', SESSION)();
    links.podChanged(aPoolPod(SESSION), false);
    assert.deepEqual([link.session, link.view.fresh], [SESSION, true]);
    links.assign('pod-1', claim);
    assert.equal(link.view.fresh, true);
  });

  test('whose pod this leader has created and claimed, before it has answered', async () => {
    const { links, link, clock } = await waiting(true);
    links.claiming('pod-1', SESSION);
    links.assign('pod-1', claim);
    assert.equal(link.view.fresh, true);
    link.podChanged({ scheduled: true, deleted: false });
    await clock.advance(500);
    assert.deepEqual([link.view.phase, link.view.fresh], ['Unbound', true]);
  });

  test('and may have where another has claimed the pod that this leader has created', async () => {
    const { links, link } = await waiting(true);
    links.podChanged(aPoolPod(SESSION), false);
    assert.equal(link.view.fresh, false);
  });

  test('and may have where another has claimed its pod', async () => {
    const { links, link } = await waiting();
    links.claiming('pod-1', 'other');
    links.claiming('pod-1', SESSION)();
    links.podChanged(aPoolPod(SESSION), false);
    links.assign('pod-1', claim);
    assert.equal(link.view.fresh, false, 'this leader’s own claim has failed, or is of another session');
    links.assign('pod-1', { ...claim, uid: 'other' });
    assert.deepEqual([link.session, link.view.fresh], [SESSION, false]);
  });
});
