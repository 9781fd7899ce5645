import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { frameKeys, open, openState, seal, sealState, stateKey } from '../../../core/frames/seal.ts';
import { systemRandom } from '../../../core/system.ts';
import { keys, master } from './support.ts';

const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));
const pod = { session: 's', podUID: 'p', boot: 'b' };

describe('sealing', () => {
  test('a sealed text opens with the same key and associated data, and with nothing else', () => {
    fc.assert(
      fc.property(bytes, bytes, (plain, associated) => {
        const sealed = seal(keys.up, plain, associated, systemRandom);
        assert.deepEqual(open(keys.up, sealed, associated), plain);
        assert.equal(open(keys.down, sealed, associated), undefined);
        assert.equal(open(keys.up, sealed, Buffer.concat([associated, Buffer.of(0)])), undefined);
      }),
    );
  });

  test('any changed or missing byte makes it unreadable, never an exception', () => {
    fc.assert(
      fc.property(bytes, fc.nat(), fc.integer({ min: 1, max: 255 }), (plain, pick, flip) => {
        const sealed = seal(keys.up, plain, Buffer.alloc(0), systemRandom);
        assert.equal(open(keys.up, sealed.subarray(0, pick % sealed.length), Buffer.alloc(0)), undefined);
        sealed[pick % sealed.length] = (sealed[pick % sealed.length] as number) ^ flip;
        assert.equal(open(keys.up, sealed, Buffer.alloc(0)), undefined);
      }),
    );
  });

  test('the frame keys depend on direction, session, pod and boot nonce', () => {
    const { up, down } = frameKeys(master, pod);
    const all = [
      up,
      down,
      frameKeys(master, { ...pod, session: 't' }).up,
      frameKeys(master, { ...pod, podUID: 'q' }).up,
      frameKeys(master, { ...pod, boot: 'c' }).up,
      frameKeys(Buffer.alloc(32, 8), pod).up,
    ].map((key) => key.toString('hex'));
    assert.equal(new Set(all).size, all.length);
    assert.deepEqual(frameKeys(master, pod), { up, down });
  });

  test('a state opens for its own session and key id only', () => {
    const key = stateKey(master, 's');
    const sealed = sealState(key, Buffer.from('state'), { session: 's', keyId: 'k' }, systemRandom);
    assert.equal(openState(key, sealed, { session: 's', keyId: 'k' })?.toString(), 'state');
    assert.equal(openState(key, sealed, { session: 't', keyId: 'k' }), undefined);
    assert.equal(openState(key, sealed, { session: 's', keyId: 'l' }), undefined);
    assert.equal(openState(stateKey(master, 't'), sealed, { session: 's', keyId: 'k' }), undefined);
  });
});
