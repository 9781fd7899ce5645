import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Environments, type EnvironmentsOptions } from '../../../../controller/environments/environments.ts';
import { systemRandom } from '../../../../core/system.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aSession } from '../../../support/world.ts';

/** A controller of environments that is about to delete an unused build, and is told to stop meanwhile. */
async function stopped(graceMs: number) {
  const clock = new VirtualClock();
  const closing = new AbortController();
  const session = aSession({ spec: { build: 'Environment' } as never, status: { phase: 'Finished' } });
  let signal: AbortSignal | undefined;
  let answer = () => {};
  const api = {
    delete: (_resource: object, _ref: object, options: { signal: AbortSignal }) => {
      signal = options.signal;
      return new Promise<void>((resolve, reject) => {
        answer = resolve;
        options.signal.addEventListener('abort', () => reject(new Error('cut off')));
      });
    },
  };
  const caches = { allEnvironments: () => [], environment: () => 'Missing', allSessions: () => [session] };
  const log = { info() {}, warn() {}, debug() {}, error() {} };
  const environments = new Environments({
    ...{ api, caches, clock, log, random: systemRandom },
    signal: new AbortController().signal,
    closing: closing.signal,
  } as unknown as EnvironmentsOptions);
  environments.start();
  await clock.advance(2 * 60 * 60_000);
  assert.ok(signal, 'it deletes the build');
  closing.abort(new Error('the controller is stopping'));
  const isDone = environments.stop(graceMs);
  return { clock, isDone, answer, signal };
}

test('a controller that stops finishes the deletion of a build, and says that nothing is under way', async () => {
  const { answer, isDone, signal } = await stopped(5000);
  assert.equal(signal.aborted, false);
  answer();
  assert.equal(await isDone, true);
});

test('a controller that stops says that a request may still take effect where it was cut off', async () => {
  const { clock, isDone, signal } = await stopped(5000);
  await clock.advance(5000);
  assert.deepEqual([signal.aborted, await isDone], [true, false]);
});
