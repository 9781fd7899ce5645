import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Links, type LinksOptions } from '../../../../controller/link/links.ts';
import type { AttachOptions, PodStream } from '../../../../core/kube/types.ts';
import { silentLogger } from '../../../../core/system.ts';
import { PodRunner } from '../../../support/pod-runner.ts';
import { seededRandom } from '../../../support/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aPod } from '../../../support/world.ts';

function newLinks(options: Pick<LinksOptions, 'api' | 'clock' | 'random' | 'attachesPerNode' | 'isWaitedFor'>) {
  return new Links({
    ...options,
    log: silentLogger,
    lingerMs: 60_000,
    epoch: () => 5,
    keys: { current: { id: 'k', key: Buffer.alloc(32) }, byId: new Map() },
    onChange: () => {},
    onLaterEpoch: () => {},
  });
}

/** Links to pods of one node, of which one at a time is being attached, and none ever answers. */
function oneAtATime(isWaitedFor: LinksOptions['isWaitedFor']) {
  const clock = new VirtualClock();
  const attached: string[] = [];
  const attach = ({ name }: { name: string }, { signal }: AttachOptions) => {
    attached.push(name);
    const { promise, reject } = Promise.withResolvers<PodStream>();
    signal?.addEventListener('abort', () => reject(signal.reason));
    return promise;
  };
  const links = newLinks({ api: { attach }, clock, random: seededRandom(), attachesPerNode: 1, isWaitedFor });
  const open = (name: string, owner: { key: string; uid: string }) => {
    const pod = aPod({ name, uid: name });
    links.open(pod, { ...owner, incarnation: 1 }).open({ scheduled: true, running: true, node: 'node-1' });
  };
  return { links, clock, attached, open };
}

test('a session that somebody waits for is attached first on its node, then pods of pools, then sessions at rest', async () => {
  const waitedFor = new Set<string>(['team/first']);
  const { links, clock, attached, open } = oneAtATime(({ key }) => waitedFor.has(key));
  open('first', { key: 'team/first', uid: 'session-1' });
  await clock.advance(1_000);
  open('idle', { key: 'team/idle', uid: 'session-2' });
  open('pool-0', { key: 'team/busy', uid: '' });
  open('busy', { key: 'team/busy', uid: 'session-3' });
  await clock.advance(1_000);
  waitedFor.add('team/busy');
  links.reconsider('busy');
  for (const name of ['first', 'busy', 'pool-0']) {
    links.close(name);
    await clock.advance(1_000);
  }
  assert.deepEqual(attached, ['first', 'busy', 'pool-0', 'idle']);
});

test('the pod of a pool is attached first once a session has claimed it', async () => {
  const { links, clock, attached, open } = oneAtATime(({ key }) => key !== 'team/idle');
  open('first', { key: 'team/first', uid: 'session-1' });
  await clock.advance(1_000);
  for (const name of ['pool-0', 'pool-1']) open(name, { key: 'team/pool', uid: '' });
  await clock.advance(1_000);
  links.assign('pool-1', { key: 'team/claimer', uid: 'session-2', incarnation: 1 });
  links.close('first');
  await clock.advance(1_000);
  assert.deepEqual(attached, ['first', 'pool-1']);
});

test('what a runner owes while none of its node answers counts from the first answer of another', async () => {
  const clock = new VirtualClock();
  const random = seededRandom();
  const runners = new Map<string, PodRunner>();
  const api: LinksOptions['api'] = {
    attach: (ref, options) => (runners.get(ref.name) as PodRunner).attach(ref, options),
  };
  const links = newLinks({ api, clock, random, attachesPerNode: 16, isWaitedFor: () => true });
  const open = (name: string, node: string) => {
    const runner = new PodRunner(clock, random, name);
    runner.deaf = true;
    runners.set(name, runner);
    const link = links.open(aPod({ name, uid: name }), { key: `team/${name}`, uid: name, incarnation: 1 });
    link.open({ scheduled: true, running: true, node });
    return { runner, link };
  };
  const [first, second, elsewhere] = [open('first', 'node-1'), open('second', 'node-1'), open('elsewhere', 'node-2')];
  await clock.advance(20_000);
  const seen = () => [first, second, elsewhere].map(({ link: { view } }) => view.nodeSilent);
  assert.deepEqual(seen(), [true, true, undefined]);
  second.runner.deaf = false;
  while (second.link.view.phase === 'Opening') await clock.advance(100);
  const { silentSince = 0, nodeSilent } = first.link.view;
  assert.equal(nodeSilent, undefined);
  assert.ok(clock.monotonic() - silentSince <= 100, `${clock.monotonic() - silentSince} ms`);
  assert.ok(clock.monotonic() - (elsewhere.link.view.silentSince ?? 0) > 15_000);
  second.runner.deaf = true;
  second.runner.drop();
  await clock.advance(12_000);
  assert.deepEqual(seen(), [undefined, true, undefined], 'one of its node has answered since');
  links.close('first');
  assert.deepEqual(second.link.view.nodeSilent, undefined);
});
