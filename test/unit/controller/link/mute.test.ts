import assert from 'node:assert/strict';
import { test } from 'vitest';
import { AttachLimit } from '../../../../controller/link/attach-limit.ts';
import { Silences } from '../../../../controller/link/silences.ts';
import type { PodStream, StreamEnd } from '../../../../core/kube/types.ts';
import { PodRunner } from '../../../support/pod-runner.ts';
import { seededRandom } from '../../../support/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { linkTo } from './support.ts';

const attachToMute = async (): Promise<PodStream> => {
  const { promise, resolve } = Promise.withResolvers<StreamEnd>();
  return {
    write: async () => {},
    closeStdin: () => {},
    pause: () => {},
    resume: () => {},
    close: () => resolve({ by: 'local' }),
    closed: promise,
  };
};

test('pods that never answer do not keep another of their node waiting, however many they are', async () => {
  const clock = new VirtualClock();
  const shared = { limit: new AttachLimit(16, clock), silences: new Silences(clock) };
  for (let i = 0; i < 100; i++) linkTo({ attach: attachToMute }, clock, { ...shared, uid: `mute-${i}` });
  // Each has had its first attach by then.
  await clock.advance(100_000);
  for (let i = 0; i < 5; i++) {
    const link = linkTo(new PodRunner(clock, seededRandom(), `pod-${i}`), clock, { ...shared, uid: `pod-${i}` });
    await clock.advance(200);
    assert.equal(link.view.phase, 'Unbound');
    await clock.advance(7_000);
  }
});
