import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { giveInput } from '../../../../controller/act/runnerless.ts';
import { bodyFacts } from '../../../../controller/caches/slim.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import type { AttachOptions } from '../../../../core/kube/types.ts';
import { silentLogger } from '../../../../core/system.ts';
import { settled, VirtualClock } from '../../../support/virtual-clock.ts';
import { aMemory } from '../../../support/world.ts';

describe('an input that a pod without a runner is being given', () => {
  const INPUT = 'x'.repeat(200_000);
  const TEXT = `${JSON.stringify(INPUT)}\n`;

  /** A program that reads its stdin, and a leader that gives it to it; what it read comes in `read`. */
  async function given(program: { reads: boolean; refused?: number }) {
    const metadata = { namespace: 'team', name: 'one', uid: 'u' };
    const leadership = new AbortController();
    const clock = new VirtualClock();
    const outcome = { read: '', cut: false };
    const closed = Promise.withResolvers<void>();
    const api = {
      get: async () => ({ metadata, spec: { input: INPUT } }),
      // The signal ends the attempt, and later the stream, as with the real client.
      attach: async (_pod: unknown, { signal }: AttachOptions) => {
        if (program.refused) throw new ApiError({ code: program.refused, reason: 'induced', message: 'induced' });
        const close = () => {
          outcome.cut = true;
          closed.resolve();
        };
        signal?.addEventListener('abort', close);
        return {
          write: async (text: string) => {
            await new Promise(setImmediate);
            if (!outcome.cut && program.reads) outcome.read += text;
          },
          closeStdin: () => program.reads && closed.resolve(),
          pause: () => {},
          resume: () => {},
          close,
          closed: closed.promise,
        };
      },
    };
    const memory = aMemory();
    const context = { effects: { api, clock, log: silentLogger }, memory, signal: leadership.signal, key: 'team/one' };
    const turn = { metadata, input: bodyFacts(INPUT) };
    const pod = { metadata: { ...metadata, name: 'pod' } };
    await giveInput(context as unknown as ReconcileContext, { do: 'GiveInput', pod, turn } as never);
    return { leadership, clock, outcome, memory, closed: closed.promise };
  }

  test('is written to its end, though the leadership ends meanwhile', async () => {
    const { leadership, clock, outcome, memory, closed } = await given({ reads: true });
    leadership.abort();
    await closed;
    assert.deepEqual(outcome, { read: TEXT, cut: false });
    assert.deepEqual(memory.incarnation, { inputGiven: { podUID: 'u' } });
    await clock.advance(10_000);
  });
  test('is cut off where the program has not read it soon after, before a successor gives it too', async () => {
    const { leadership, clock, outcome } = await given({ reads: false });
    await clock.advance(60_000);
    assert.equal(outcome.cut, false, 'a leader waits for it');
    leadership.abort();
    await clock.advance(999);
    assert.equal(outcome.cut, false);
    await clock.advance(1);
    assert.equal(outcome.cut, true);
  });
  test('is let go of once the program has it', async () => {
    const { leadership, clock, outcome, closed } = await given({ reads: true });
    await closed;
    await settled();
    leadership.abort();
    await clock.advance(10_000);
    assert.deepEqual([outcome.cut, clock.pending], [false, 0]);
  });
  test('is tried again where the API server or the kubelet has too much to do, or starts anew', async () => {
    for (const refused of [429, 500, 503, 504]) {
      await assert.rejects(given({ reads: true, refused }), { code: refused });
    }
  });
  test('is not tried again where it may not be given', async () => {
    for (const refused of [400, 403, 404]) {
      assert.deepEqual((await given({ reads: true, refused })).memory.incarnation, { inputGiven: { podUID: 'u' } });
    }
  });
});
