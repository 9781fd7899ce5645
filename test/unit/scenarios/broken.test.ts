import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { culprit, currentTurn, failedAgain, isProgrammingError } from '../../../controller/decide/broken.ts';
import type { Failing } from '../../../controller/observed/world.ts';
import { ApiError, TransportError } from '../../../core/kube/errors.ts';
import { events } from '../../../core/kube/resources.ts';
import { type StoredTurn, turns } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import { QuietWorld } from '../../support/quiet-world.ts';
import { aTurn, aWorld, runningTurn } from '../../support/world.ts';

const PLAN = { ms: 10, output: 1 };

describe('a programming error', () => {
  for (const [error, expected] of [
    [new TypeError('x'), true],
    [new RangeError('x'), true],
    [new ReferenceError('x'), true],
    [new assert.AssertionError({ message: 'x' }), true],
    [new Error('x'), false],
    [new DOMException('x', 'AbortError'), false],
    [new TransportError('x'), false],
    [new ApiError({ code: 500, reason: 'InternalError', message: 'x' } as never), false],
    ['x', false],
  ] as const) {
    test(`${error instanceof Error ? error.name : error} is ${expected ? '' : 'no '}such error`, () => {
      assert.equal(isProgrammingError(error), expected);
    });
  }

  test('ends its turn with the fifth failure in a row, and not within a second', () => {
    const after = (...times: number[]) => {
      let failing: Failing | undefined;
      return times.map((at) => {
        const step = failedAgain(failing, at);
        failing = step.failing;
        return step.isEnough;
      });
    };
    assert.deepEqual(after(0, 50, 150, 350, 1_000), [false, false, false, false, true]);
    assert.deepEqual(after(0, 1, 2, 3, 4, 5, 999, 1_000), [false, false, false, false, false, false, false, true]);
    assert.deepEqual(after(0, 60_000), [false, false]);
  });

  test('is about the turn at which alone decisions fail, and about none where they fail without turns too', () => {
    const [good, bad, worse] = ['good', 'bad', 'worse'].map((name) => aTurn({ name })) as [never, never, never];
    const failsAt =
      (...names: string[]) =>
      (world: { turns: { metadata: { name: string } }[] }) => {
        if (world.turns.some(({ metadata }) => names.includes(metadata.name))) throw new TypeError('x');
      };
    const world = aWorld({ turns: [good, bad, worse] });
    assert.equal(culprit(world, failsAt('bad')), bad);
    assert.equal(culprit(world, failsAt('bad', 'worse')), bad);
    assert.equal(culprit(world, failsAt()), undefined);
    const always = () => {
      throw new TypeError('x');
    };
    assert.equal(culprit(world, always), undefined);
  });

  test('is else about the turn that runs, or the next', () => {
    const ended = aTurn({ name: 'ended', status: { index: 1, phase: 'Succeeded' } });
    const runs = runningTurn('runs', { status: { index: 2 } });
    const [old, young] = [aTurn({ name: 'old', age: 20 }), aTurn({ name: 'young', age: 5 })];
    assert.equal(currentTurn([young, old, runs, ended]), runs);
    assert.equal(currentTurn([young, old, ended]), old);
    assert.equal(currentTurn([ended]), undefined);
  });
});

/** The controller fails by an error of its own when it writes what `matches`. */
function plant(world: QuietWorld, matches: (turn: StoredTurn) => boolean): void {
  world.refuse = ({ verb, resource, object }) => {
    const isMeant = verb === 'replace' && resource === 'turns' && matches(object as unknown as StoredTurn);
    return isMeant ? new TypeError('planted') : undefined;
  };
}

describe('a controller that fails at one turn again and again', () => {
  for (const [what, phase] of [
    ['before it runs', 'Queued'],
    ['as it begins', 'Running'],
    ['as it ends', 'Succeeded'],
  ] as const) {
    test(`${what} ends it as InternalError, with an event, and the others of the session succeed`, async () => {
      const world = new QuietWorld();
      plant(world, ({ metadata, status }) => metadata.name === 'poison' && status?.phase === phase);
      await world.start();
      const session = await world.session('notes');
      const other = await world.session('other');
      for (const name of ['before', 'poison', 'behind']) await world.give(name, PLAN, 'notes');
      assert.equal((await world.turn(other, 'elsewhere', PLAN)).status?.phase, 'Succeeded');
      const status = (name: string) => world.server.get(turns, 'team', name)?.status;
      await world.until('all', () => ['before', 'poison', 'behind'].every((name) => isTerminal(status(name)?.phase)));
      assert.deepEqual([status('before')?.phase, status('behind')?.phase], ['Succeeded', 'Succeeded']);
      assert.deepEqual([status('poison')?.phase, status('poison')?.error?.code], ['Failed', 'InternalError']);
      assert.match(status('poison')?.error?.message ?? '', /planted/);
      assert.deepEqual(['before', 'poison', 'behind'].map((name) => status(name)?.index).sort(), [1, 2, 3]);
      const logged = world.logged.find(({ fields }) => fields.turn === 'poison' && fields.err !== undefined);
      await world.until('the event', () =>
        world.server
          .list(events)
          .some(({ reason, message }) => reason === 'InternalError' && /poison/.test(message ?? '')),
      );
      assert.match((logged?.fields.err as Error | undefined)?.stack ?? '', /broken\.test\.ts/);
      assert.equal((await world.turn(session, 'last', PLAN)).status?.phase, 'Succeeded');
    });
  }

  test('and cannot decide upon its end either writes that end, and logs it as a commit', async () => {
    const world = new QuietWorld();
    const said = (text: string) => world.logged.filter(({ message }) => message === text);
    const givenUp = () => said('turn ended because its reconcile fails repeatedly').length;
    plant(world, ({ metadata }) => metadata.name === 'poison' && givenUp() < 2);
    await world.start();
    const session = await world.session('notes');
    await world.give('poison', PLAN, 'notes');
    const status = () => world.server.get(turns, 'team', 'poison')?.status;
    await world.until('the end', () => isTerminal(status()?.phase));
    assert.deepEqual([status()?.phase, status()?.error?.code, givenUp()], ['Failed', 'InternalError', 2]);
    assert.equal((await world.turn(session, 'last', PLAN)).status?.phase, 'Succeeded');
    const committed = said('turn committed').filter(({ fields }) => fields.turn === 'poison');
    assert.deepEqual(
      committed.map(({ fields }) => [fields.session, fields.phase, fields.code]),
      [['team/notes', 'Failed', 'InternalError']],
    );
  });
});
