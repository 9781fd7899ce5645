import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ApiError } from '../../../core/kube/errors.ts';
import type { ControllerCall } from '../../sim/observer.ts';
import { QuietWorld } from '../../support/quiet-world.ts';

const FORBIDDEN = new ApiError({ code: 403, reason: 'Forbidden', message: 'no such right' });
const message = (world: QuietWorld, text: string) => world.logged.some((entry) => entry.message === text);

/** A cluster whose controller has started, and whose calls are refused for as long as `isRefused` says so. */
async function starting(isRefused: (call: ControllerCall) => boolean) {
  const world = new QuietWorld();
  await world.furnish();
  world.refuse = (call) => (isRefused(call) ? FORBIDDEN : undefined);
  world.replica.start();
  return world;
}

describe('a controller that holds the lease', () => {
  test('says that it cannot read the master keys, and acts once it can', async () => {
    const world = await starting(({ resource }) => resource === 'secrets');
    await world.until('the problem', () => world.replica.problem?.includes('master keys') === true);
    assert.match(world.replica.problem ?? '', /no such right/);
    await world.pass(10_000);
    assert.equal(world.replica.isLeading, false);
    world.refuse = () => undefined;
    await world.until('leading', () => world.replica.isLeading);
    assert.equal(world.replica.problem, undefined);
    await world.session('one');
  });

  test('acts once it has read what an earlier leader wrote', async () => {
    let hasKeys = false;
    const world = await starting(({ verb, resource }) => {
      hasKeys ||= resource === 'secrets';
      return hasKeys && verb === 'list' && resource === 'turns';
    });
    await world.until('the refusal', () => message(world, 'sessions, turns and pods could not be read'));
    await world.pass(10_000);
    assert.equal(world.replica.isLeading, false);
    world.refuse = () => undefined;
    await world.until('leading', () => world.replica.isLeading);
  });
});
