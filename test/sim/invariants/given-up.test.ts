import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Run } from '../cluster/agent.ts';
import type { SimContainer } from '../cluster/container.ts';
import type { Facts } from './facts.ts';
import { givenUpForWork } from './given-up.ts';

/** A pod whose run ended at 100 is given up at 200, after frames that its runner wrote first at these times. */
function givenUp(...frames: { seq: number; printedAt: number }[]): string[] {
  const failed: string[] = [];
  const run = { podUID: 'pod', startedAt: 10, end: { at: 100 } } as unknown as Run;
  const facts = { runs: new Map([['turn', [run]]]), fail: (name: string) => failed.push(name) };
  const invariant = givenUpForWork(facts as unknown as Facts, { maxRunning: undefined, nodeGraceSeconds: 60 });
  for (const frame of frames) {
    const word = { process: 'a', agoMs: 1, onActivity: true, frames: [{ ...frame, kind: 'pong' }] };
    invariant.heard?.({ podUID: 'pod' } as SimContainer, word);
  }
  invariant.gaveUp?.({ process: 'a', podUID: 'pod', why: 'it works on a turn that is gone', session: 'team/s' });
  return failed;
}

describe('a pod that is given up for work', () => {
  test('was not to be where its runner has answered since the end of its run', () => {
    assert.deepEqual(givenUp({ seq: 1, printedAt: 101 }), ['given up for work']);
  });

  test('may be where the answer was written before that end and only sent again after it', () => {
    assert.deepEqual(givenUp({ seq: 1, printedAt: 99 }), []);
  });

  test('may be where the answer is behind a gap', () => {
    assert.deepEqual(givenUp({ seq: 1, printedAt: 99 }, { seq: 3, printedAt: 101 }), []);
  });
});
