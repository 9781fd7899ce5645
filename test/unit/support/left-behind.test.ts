import assert from 'node:assert/strict';
import { test } from 'vitest';
import { changedSince, sharedState } from '../../support/left-behind.ts';

const { now } = Date;
const { setTimeout } = globalThis;
const umask = process.umask();
const nothing = () => {};

/** Puts a value in the place of another. */
const set = (owner: object, name: string, value: unknown) => Object.assign(owner, { [name]: value });

/** Changes that a test file may make and forget: what is named, the change and its undoing. */
const CHANGES: Record<string, [() => unknown, () => unknown]> = {
  'process.env.BERTH_TEST': [() => set(process.env, 'BERTH_TEST', '1'), () => delete process.env.BERTH_TEST],
  'globalThis.berthTest': [
    () => set(globalThis, 'berthTest', 1),
    () => Reflect.deleteProperty(globalThis, 'berthTest'),
  ],
  'globalThis.setTimeout': [
    () => set(globalThis, 'setTimeout', nothing),
    () => set(globalThis, 'setTimeout', setTimeout),
  ],
  'Date.now': [() => set(Date, 'now', () => 0), () => set(Date, 'now', now)],
  'process.stdout.write': [
    () => set(process.stdout, 'write', () => true),
    () => Reflect.deleteProperty(process.stdout, 'write'),
  ],
  'listeners of process for SIGUSR2': [() => process.on('SIGUSR2', nothing), () => process.off('SIGUSR2', nothing)],
  'process.exitCode': [() => set(process, 'exitCode', 3), () => set(process, 'exitCode', undefined)],
  'process.umask()': [() => process.umask(0o077), () => process.umask(umask)],
};

for (const [name, [change, undo]] of Object.entries(CHANGES)) {
  test(`a file that leaves another ${name} is told, one that puts it back is not`, () => {
    const before = sharedState();
    change();
    const changed = changedSince(before);
    undo();
    assert.deepEqual(changed, [name]);
    assert.deepEqual(changedSince(before), []);
  });
}
