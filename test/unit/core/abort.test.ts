import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'vitest';
import { aborted, onAbort, unlessAborted } from '../../../core/abort.ts';

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
