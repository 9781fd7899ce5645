import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { bodyFacts } from '../../../../controller/caches/slim.ts';
import { buildResult } from '../../../../controller/environments/build-result.ts';
import { rebuild } from '../../../../controller/settings/builder.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import type { StoredTurn } from '../../../../core/resources/kinds.ts';
import { aSession } from '../../../support/world.ts';

const INPUT = { requirements: ['httpx'] };
const build = aSession({ spec: { build: 'Environment', input: bodyFacts(INPUT) } as never });
const HASH = `sha256:${'a'.repeat(64)}`;
const OUTPUT = {
  python: '3.12.1',
  uv: '0.13.9',
  packages: [{ name: 'httpx', version: '1', hashes: [HASH] }],
  bytes: 7,
};

function read(turn: { input?: unknown; status?: object; uid?: string } | undefined) {
  const { input = INPUT, status = {}, uid = build.metadata.uid } = turn ?? {};
  const ownerReferences = [{ kind: 'Session', name: build.metadata.name, uid, apiVersion: 'berth.dev/v1alpha1' }];
  const found = { metadata: { name: 'first', namespace: 'team', uid: 't', ownerReferences }, spec: { input }, status };
  const api = {
    get: async () => {
      if (!turn) throw new ApiError({ code: 404, reason: 'NotFound', message: 'not found' });
      return found as unknown as StoredTurn;
    },
  };
  const store = { get: async () => Buffer.from('') };
  return buildResult({ api: api as never, store }, build, new AbortController().signal);
}

describe('the result of a build', () => {
  test('is not there before its turn has ended', async () => {
    assert.equal(await read({ status: { phase: 'Running' } }), undefined);
  });

  test('is what the builder says of the environment', async () => {
    const result = await read({ status: { phase: 'Succeeded', output: OUTPUT } });
    assert.deepEqual(result, { phase: 'Succeeded', described: OUTPUT });
  });

  test('of a turn that asked for other packages does not count', async () => {
    const status = { phase: 'Succeeded', output: OUTPUT };
    assert.equal((await read({ input: { requirements: ['evil'] }, status }))?.code, 'OtherInput');
  });

  test('that was deleted, or is that of another session, is told as deleted', async () => {
    assert.equal((await read(undefined))?.code, 'TurnDeleted');
    assert.equal((await read({ uid: 'another', status: { phase: 'Succeeded' } }))?.code, 'TurnDeleted');
  });

  test('has the code of the builder rather than that of the turn', async () => {
    const error = { code: 'AgentFailed', message: 'no set fits' };
    const told = await read({ status: { phase: 'Failed', error, metadata: { code: 'Unsolvable' } } });
    assert.deepEqual(told, { phase: 'Failed', code: 'Unsolvable', message: 'no set fits' });
    assert.equal((await read({ status: { phase: 'Failed', error } }))?.code, 'AgentFailed');
  });

  test('is cut to what a status can hold', async () => {
    const long = { name: 'n'.repeat(300), version: 'v'.repeat(300), hashes: ['md5:1'] };
    const output = { ...OUTPUT, packages: [long, null], python: '3'.repeat(99), bytes: -1 };
    const result = await read({ status: { phase: 'Succeeded', output } });
    assert.deepEqual(result?.described?.packages, [
      { name: 'n'.repeat(256), version: 'v'.repeat(128) },
      { name: 'undefined', version: 'undefined' },
    ]);
    assert.deepEqual([result?.described?.python.length, result?.described?.bytes], [32, 0]);
    assert.equal((await read({ status: { phase: 'Succeeded', output: 'nonsense' } }))?.described, undefined);
  });

  test('leaves out digests that would not fit into an object', async () => {
    const hashes = Array.from({ length: 16 }, () => HASH);
    const packages = Array.from({ length: 1024 }, (_, i) => ({ name: `p${i}`, version: '1', hashes }));
    const result = await read({ status: { phase: 'Succeeded', output: { ...OUTPUT, packages } } });
    assert.equal(result?.described?.packages.length, 1024);
    assert.equal(result?.described?.packages[0]?.hashes, undefined);
  });

  test('leaves out the digests where it has more packages than a status names, so that no later build installs a part', async () => {
    const many = (length: number) =>
      Array.from({ length }, (_, i) => ({ name: `p${i}`, version: '1', hashes: [HASH] }));
    const readMany = async (length: number) => {
      const output = { ...OUTPUT, packages: many(length) };
      return (await read({ status: { phase: 'Succeeded', output } }))?.described?.packages ?? [];
    };
    assert.deepEqual(await readMany(1024), many(1024));
    const cut = await readMany(1025);
    assert.equal(cut.length, 1024);
    assert.ok(cut.every(({ hashes }) => hashes === undefined));
    const input = { requirements: ['everything'] };
    const spec = { class: 'python', turns: 'One', build: 'Environment', input } as const;
    assert.equal(rebuild({ hash: 'a'.repeat(64), name: 'env-a', spec }, cut), undefined);
  });
});
