import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Waits } from '../../../../api/streams/waits.ts';
import { ApiError, TransportError } from '../../../../core/kube/errors.ts';
import type { KubeApi } from '../../../../core/kube/types.ts';
import type { StoredTurn } from '../../../../core/resources/kinds.ts';
import { isTerminal } from '../../../../core/resources/turn-phases.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const refused = (code: number) => new ApiError({ code, reason: 'induced', message: `induced ${code}` });
const aTurn = (phase: string) =>
  ({ metadata: { namespace: 'ns', name: 'a', uid: 'u' }, spec: {}, status: { phase } }) as unknown as StoredTurn;
const ended = (turn: StoredTurn) => isTerminal(turn.status?.phase);

/** Waits half a minute for the end of turn a; each list comes to the next reply, each watch is cut after a second. */
async function waited(replies: (StoredTurn | Error)[], known?: StoredTurn) {
  const clock = new VirtualClock();
  const pause = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const cancel = clock.setTimer(ms, resolve);
      signal?.addEventListener('abort', () => {
        cancel();
        reject(signal.reason);
      });
    });
  const api = {
    list: async () => {
      const reply = replies.length > 1 ? replies.shift() : replies[0];
      if (reply instanceof Error) throw reply;
      return { items: [reply], metadata: { resourceVersion: '1' } };
    },
    // biome-ignore lint/correctness/useYield: it is cut before there is anything to tell
    watch: async function* (_: unknown, { signal }: { signal: AbortSignal }) {
      await pause(1_000, signal);
      throw new TransportError('cut');
    },
  } as unknown as Pick<KubeApi, 'list' | 'watch'>;
  const place = { namespace: 'ns', name: 'a', ...(known ? { known } : {}) };
  const waiting = new Waits(api, clock)
    .forTurn(place, ended, 30_000, new AbortController().signal)
    .then((turn) => turn?.status?.phase ?? 'none')
    .catch((error: unknown) => error);
  await clock.advance(40_000);
  return { end: await waiting, left: clock.pending };
}

describe('a wait for a turn', () => {
  const away = new TransportError('connect ECONNREFUSED');

  test('goes on while the API server starts anew', async () => {
    const replies = [
      aTurn('Running'),
      away,
      refused(401),
      refused(403),
      refused(503),
      refused(429),
      aTurn('Succeeded'),
    ];
    assert.deepEqual(await waited(replies, aTurn('Queued')), { end: 'Succeeded', left: 0 });
  });

  test('ends in its time with what was seen last, though the cluster does not answer', async () => {
    assert.deepEqual(await waited([aTurn('Running'), away]), { end: 'Running', left: 0 });
    assert.deepEqual(await waited([away], aTurn('Queued')), { end: 'Queued', left: 0 });
    assert.deepEqual(await waited([away]), { end: 'none', left: 0 });
  });

  test('ends at once with what cannot pass', async () => {
    for (const code of [400, 403, 404]) {
      const { end } = await waited([refused(code), aTurn('Succeeded')]);
      assert.equal((end as ApiError).code, code);
    }
  });
});
