import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { test } from 'vitest';
import { aborted, anySignal, onAbort, unlessAborted } from '../../../core/abort.ts';

const ROOT = join(import.meta.dirname, '../../..');

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;

test('a function is called once when the signal aborts, at once if it already has', () => {
  const controller = new AbortController();
  let calls = 0;
  onAbort(controller.signal, () => calls++);
  assert.equal(calls, 0);
  controller.abort();
  assert.equal(calls, 1);
  onAbort(controller.signal, () => calls++);
  assert.equal(calls, 2);
});

test('a removed function is not called', () => {
  const controller = new AbortController();
  let calls = 0;
  const remove = onAbort(controller.signal, () => calls++);
  remove();
  controller.abort();
  assert.equal(calls, 0);
});

test('the wait for an abort ends with a signal that aborted before', async () => {
  await aborted(AbortSignal.abort());
});

test('a promise is left when the signal aborts, and leaves no listener when it settles first', async () => {
  const controller = new AbortController();
  assert.equal(await unlessAborted(Promise.resolve(7), controller.signal), 7);
  await assert.rejects(unlessAborted(Promise.reject(new Error('its own')), controller.signal), /its own/);
  assert.equal(listeners(controller.signal), 0);
  const left = unlessAborted(new Promise(() => {}), controller.signal);
  controller.abort(new Error('the reason'));
  await assert.rejects(left, /the reason/);
});

test('a signal of several is aborted by one of them that is gone before anybody looks', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const lasting = new AbortController();
  const abortOneAtOnce = () => {
    const brief = new AbortController();
    const either = anySignal(lasting.signal, brief.signal);
    brief.abort('over');
    return either;
  };
  const either = abortOneAtOnce();
  await setImmediate();
  collectGarbage();
  assert.equal(either.aborted, true);
  assert.equal(either.reason, 'over');
});

test('signals are combined by anySignal alone', () => {
  const files = globSync('{api,cli,controller,core,local,runner,test}/**/*.ts', { cwd: ROOT });
  const own = ['core/abort.ts', 'test/unit/core/abort.test.ts'];
  const others = files.filter((file) => readFileSync(join(ROOT, file), 'utf8').includes('AbortSignal.any('));
  assert.deepEqual(
    others.filter((file) => !own.includes(file)),
    [],
  );
});
