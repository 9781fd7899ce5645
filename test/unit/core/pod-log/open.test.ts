import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ApiError, isPodGone } from '../../../../core/kube/errors.ts';
import { findPod, type LogApi, openLog } from '../../../../core/pod-log/open.ts';
import { podText } from '../../../../core/pod-log/session-text.ts';
import { podOf } from '../../../support/pod-of.ts';

const OURS = { namespace: 'default', name: 'pod', session: 'notes-uid', incarnation: 3 };
const gone = () => new ApiError({ code: 404, reason: 'NotFound', message: 'gone', details: { kind: 'pods' } });

/** A cluster that shows these pods of one name, one after the other for each read, and has this log under the name. */
function cluster(
  pods: (ReturnType<typeof podOf> | undefined)[],
  log = ['one\n', 'two\n'],
): LogApi & { opened: number } {
  let reads = 0;
  const api = {
    opened: 0,
    get: async () => {
      const pod = pods[Math.min(reads++, pods.length - 1)];
      if (!pod) throw gone();
      return pod;
    },
    podLog: async function* () {
      api.opened += 1;
      for (const piece of log) yield Buffer.from(piece);
    },
  };
  return api as unknown as LogApi & { opened: number };
}

async function read(api: LogApi, uid: string): Promise<string> {
  let text = '';
  for await (const piece of openLog(api, { namespace: 'default', name: 'pod', uid }, {})) text += piece;
  return text;
}

describe('the pod of an incarnation', () => {
  const ours = podOf('notes-uid', 3, 'a');
  const orphan = { ...ours, metadata: { ...ours.metadata, ownerReferences: [] } };
  for (const [what, pod, uid] of [
    ['its own', ours, 'a'],
    ['none where there is none of the name', undefined, undefined],
    ['not that of another session', podOf('other-uid', 3, 'a'), undefined],
    ['not that of an earlier incarnation', podOf('notes-uid', 2, 'a'), undefined],
    ['not one of a pool that nobody has claimed yet', podOf('', 3, 'a'), undefined],
    ['not one that only says so in its labels', orphan, undefined],
  ] as const) {
    test(`is ${what}`, async () => {
      assert.equal((await findPod(cluster([pod]), OURS))?.uid, uid);
    });
  }

  test('tells whether a runner writes its log', async () => {
    const none = podOf('notes-uid', 3, 'a', { 'berth.dev/runner': 'None' });
    for (const [pod, hasRunner] of [
      [ours, true],
      [none, false],
    ] as const)
      assert.equal((await findPod(cluster([pod]), OURS))?.hasRunner, hasRunner);
  });
});

describe('the log of a pod', () => {
  const [ours, other] = [podOf('notes-uid', 3, 'a'), podOf('other-uid', 1, 'b')];

  test('is read while the pod has its name', async () => {
    assert.equal(await read(cluster([ours]), 'a'), 'one\ntwo\n');
  });

  test('is not opened where another pod has the name, or none', async () => {
    for (const pod of [other, undefined]) {
      const api = cluster([pod]);
      await assert.rejects(read(api, 'a'), (error) => isPodGone(error));
      assert.equal(api.opened, 0);
    }
  });

  test('is not shown where another pod has got the name while it was opened', async () => {
    for (const pod of [other, undefined]) await assert.rejects(read(cluster([ours, pod]), 'a'), { code: 404 });
  });

  test('is gone in a session’s text where another pod has the name', async () => {
    const text = async (api: LogApi) => {
      let all = '';
      for await (const piece of podText(api, OURS, { signal: new AbortController().signal })) all += piece;
      return all;
    };
    assert.equal(await text(cluster([ours])), 'one\ntwo\n');
    assert.equal(await text(cluster([other])), '');
    assert.equal(await text(cluster([ours, ours, other])), '');
  });
});
