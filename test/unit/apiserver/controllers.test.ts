import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ApiError } from '../../../core/kube/errors.ts';
import type { Clock } from '../../../core/runtime.ts';
import { silentLogger, systemRandom } from '../../../core/system.ts';
import { bootstrap } from '../../../local/apiserver/bootstrap.ts';
import { Controllers } from '../../../local/apiserver/controllers/controllers.ts';
import { eventSweeper } from '../../../local/apiserver/controllers/events.ts';
import { builtinResources } from '../../../local/apiserver/registry/builtin/index.ts';
import { Catalogue } from '../../../local/apiserver/registry/catalogue.ts';
import { Registry } from '../../../local/apiserver/registry/registry.ts';
import type { ResourceType } from '../../../local/apiserver/registry/types.ts';
import { VersionedStore } from '../../../local/apiserver/store/versioned.ts';

const hour = 3_600_000;

/** A registry whose writes fail while `full` is set, and a clock whose last timer `tick` runs. */
function setUp() {
  let now = Date.parse('2026-01-01T00:00:00Z');
  const state = { full: false, timers: 0, tick: () => {}, pass: (ms: number) => (now += ms) };
  const clock = {
    now: () => now,
    monotonic: () => now,
    setTimer: (_ms: number, fn: () => void) => {
      state.timers += 1;
      state.tick = fn;
      return () => {};
    },
  };
  const append = () => {
    if (state.full) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  };
  const store = new VersionedStore({ historyLength: 100, sink: { append } });
  const registry = new Registry({ store, catalogue: new Catalogue(builtinResources), clock, random: systemRandom });
  const controllers = new Controllers(silentLogger, clock);
  bootstrap(registry, controllers);
  const events = registry.catalogue.byStorage('events') as ResourceType;
  const event = (name: string, lastTimestamp?: string) =>
    registry.create(
      events,
      'default',
      { metadata: { name }, involvedObject: {}, ...(lastTimestamp ? { lastTimestamp } : {}) },
      controllers.request,
    );
  const left = () => store.list('events').map(({ metadata }) => metadata.name);
  return { state, registry, clock, event, left };
}

test('events go an hour after they were last seen', () => {
  const { state, registry, clock, event, left } = setUp();
  const stop = eventSweeper(registry, clock, silentLogger);
  event('once');
  event('again', '2026-01-01T00:50:00Z');
  state.pass(hour - 1000);
  state.tick();
  assert.deepEqual(left(), ['again', 'once']);
  state.pass(1000);
  state.tick();
  assert.deepEqual(left(), ['again']);
  state.pass(hour);
  state.tick();
  assert.deepEqual(left(), []);
  stop();
});

test('events that cannot be removed from a full disk go once there is room again', () => {
  const { state, registry, clock, event, left } = setUp();
  const stop = eventSweeper(registry, clock, silentLogger);
  event('old');
  state.pass(hour);
  state.full = true;
  state.tick();
  assert.deepEqual([left(), state.timers], [['old'], 2]);
  state.full = false;
  state.tick();
  assert.deepEqual(left(), []);
  stop();
});

/** Controllers, and what they log. */
function listening(clock: Clock) {
  const told: string[] = [];
  const logger = {
    ...silentLogger,
    error: (_fields: object, message: string) => told.push(message),
    child: () => logger,
  };
  return { controllers: new Controllers(logger, clock), told };
}

test('work of a controller that a full disk keeps from being done is told once and done when there is room again', async () => {
  const { state, clock } = setUp();
  const { controllers, told } = listening(clock);
  const collected: string[] = [];
  const round = () => new Promise<void>((resolve) => controllers.soon(resolve));
  state.full = true;
  controllers.soon(() => {
    if (state.full) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    collected.push('one');
  });
  await round();
  state.tick();
  await round();
  assert.deepEqual([collected, told], [[], ['a controller of the embedded cluster failed']]);
  state.full = false;
  state.tick();
  await round();
  assert.deepEqual(collected, ['one']);
  assert.equal(told.length, 1);
});

test('work of a controller that the server refuses is told and not done again, and the next is done', async () => {
  const { state, clock } = setUp();
  const { controllers, told } = listening(clock);
  const done = new Promise<void>((resolve) => {
    controllers.soon(() => {
      throw new ApiError({ code: 422, reason: 'Invalid', message: 'broken' });
    });
    controllers.soon(resolve);
  });
  await done;
  assert.deepEqual([told, state.timers], [['a controller of the embedded cluster failed'], 0]);
});
