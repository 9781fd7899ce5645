import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Bind } from '../../../core/frames/messages.ts';
import type { Run } from '../cluster/agent.ts';
import type { SimContainer } from '../cluster/container.ts';
import type { Facts } from './facts.ts';
import { boundOnce } from './incarnations.ts';

const OF_POOL = 'p-00000000-0000-4000-8000-000000000000-0';

/** Binds the session in two living pods, one after the other; then a turn runs in `runs`. */
function failures(first: [string, number], second: [string, number], runs?: string): string[] {
  const failed: string[] = [];
  const container = (podUID: string) => ({ podUID, bind: undefined as Bind | undefined });
  const running = [first, second].map(([name]) => ({ pod: { name, uid: name }, container: container(name) }));
  const facts = {
    server: { list: () => [] },
    kubelets: { running, isAlive: () => true },
    fail: (_name: string, words: string) => failed.push(words),
  };
  const invariant = boundOnce(facts as unknown as Facts, { maxRunning: undefined, nodeGraceSeconds: 60 });
  for (const [index, [, incarnation]] of [first, second].entries()) {
    const one = running[index];
    if (!one) continue;
    const bind = { session: { uid: 's', name: 'notes' }, incarnation } as unknown as Bind;
    one.container.bind = bind;
    invariant.bound?.(bind, one.container as unknown as SimContainer);
  }
  if (runs) invariant.runStarted?.({ podUID: runs, turn: 't' } as Run, {} as SimContainer);
  return failed;
}

describe('a session that is bound in two pods', () => {
  test('was not to be, whichever came first', () => {
    assert.equal(failures(['s-1', 1], ['s-2', 2]).length, 1);
    assert.equal(failures(['s-2', 2], ['s-1', 1]).length, 1);
    assert.equal(failures([OF_POOL, 1], ['s-1', 1]).length, 1);
    assert.equal(failures(['s-1', 1], [OF_POOL, 2]).length, 1);
  });

  test('may be where the older one was claimed, answers late and runs no turn', () => {
    for (const pods of [
      [
        [OF_POOL, 1],
        ['s-2', 2],
      ],
      [
        ['s-2', 2],
        [OF_POOL, 1],
      ],
    ] as const) {
      const [first, second] = pods.map(([name, number]): [string, number] => [name, number]);
      assert.ok(first && second);
      assert.deepEqual(failures(first, second), []);
      assert.deepEqual(failures(first, second, 's-2'), []);
      assert.deepEqual(failures(first, second, OF_POOL), [
        `turn t runs in pod ${OF_POOL}, which was claimed and given up`,
      ]);
    }
  });
});
