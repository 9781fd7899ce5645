import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { failingWhenAborted, renewConsent, untilAborted } from '../../../../api/auth/renewed.ts';
import { Problem } from '../../../../api/problems/problems.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

describe('the consent to an answer that goes on', () => {
  const make = () => {
    const clock = new VirtualClock();
    const facts = { asked: 0, refused: 0, problem: undefined as Problem | undefined };
    const ask = async () => {
      facts.asked += 1;
      if (facts.problem) throw facts.problem;
    };
    return { clock, facts, end: renewConsent(clock, ask, () => facts.refused++) };
  };

  test('is asked for every ten seconds until it is refused', async () => {
    for (const code of ['Unauthenticated', 'Forbidden'] as const) {
      const { clock, facts } = make();
      await clock.advance(30_000);
      assert.deepEqual([facts.asked, facts.refused], [3, 0]);
      facts.problem = new Problem(code, 'induced');
      await clock.advance(60_000);
      assert.deepEqual([facts.asked, facts.refused, clock.pending], [4, 1, 0]);
    }
  });

  test('lasts while the cluster cannot be asked', async () => {
    const { clock, facts } = make();
    for (const code of ['ClusterUnavailable', 'Overloaded'] as const) {
      facts.problem = new Problem(code, 'induced');
      await clock.advance(30_000);
    }
    assert.deepEqual([facts.asked, facts.refused], [6, 0]);
  });

  test('is not asked for once the answer is over', async () => {
    const { clock, facts, end } = make();
    end();
    await clock.advance(60_000);
    assert.deepEqual([facts.asked, clock.pending], [0, 0]);
  });

  test('covers nothing that the stream has at hand when it is withdrawn', async () => {
    const stop = new AbortController();
    const told: number[] = [];
    const stream = (async function* () {
      yield* [1, 2, 3];
    })();
    for await (const piece of untilAborted(stream, stop.signal)) {
      told.push(piece);
      if (piece === 2) stop.abort();
    }
    assert.deepEqual(told, [1, 2]);
  });

  test('ends content with an error, also where its source has nothing for now', async () => {
    const stop = new AbortController();
    const content = (async function* () {
      yield 1;
      await new Promise(() => {});
    })();
    const told = failingWhenAborted(content, stop.signal);
    assert.deepEqual(await told.next(), { done: false, value: 1 });
    const next = told.next();
    stop.abort(new Error('withdrawn'));
    await assert.rejects(next, /withdrawn/);
  });
});
