import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { LogPlaces } from '../../../../controller/act/log-places.ts';
import { perform } from '../../../../controller/act/perform.ts';
import { silentLogger } from '../../../../core/system.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aMemory, aPod, aSession, aWorld } from '../../../support/world.ts';

const NEVER = new AbortController().signal;

/** Reads the logs of so many ended pods at once, each of the node that `nodeOf` names; those of "dead" never come. */
function reads(pods: number, nodeOf: (index: number) => string) {
  const clock = new VirtualClock();
  const logPlaces = new LogPlaces();
  const now = { held: 0, most: 0, read: 0, waiting: 0 };
  const readOne = async (index: number) => {
    const ended = aPod({ status: { phase: 'Succeeded' } });
    const pod = { ...ended, spec: { ...ended.spec, nodeName: nodeOf(index) } };
    const takeLog = async () => {
      await clock.advance(0);
      now.read += 1;
      now.held -= 1;
    };
    const api = {
      podLog: async function* () {
        now.held += 1;
        now.most = Math.max(now.most, now.held);
        if (nodeOf(index) === 'dead') await new Promise(() => {});
        yield Buffer.from('what it printed\n');
      },
    };
    const withoutWorker = async <R>(work: () => Promise<R>) => {
      now.waiting += 1;
      try {
        return await work();
      } finally {
        now.waiting -= 1;
      }
    };
    const effects = { api, clock, log: silentLogger, logPlaces, withoutWorker, links: { open: () => ({ takeLog }) } };
    const world = aWorld({ session: aSession(), pod, turns: [], now: 0 });
    const context = { key: 'team/notes', memory: aMemory(), signal: NEVER, world, effects };
    return perform({ do: 'ReadLog', pod }, context as unknown as ReconcileContext);
  };
  const all = Array.from({ length: pods }, (_, index) => readOne(index));
  return { clock, now, all };
}

describe('logs of ended containers', () => {
  test('are few in memory, however many pods have ended at once, and other sessions are reconciled meanwhile', async () => {
    const { now, all } = reads(40, (index) => `node-${index}`);
    assert.equal(now.waiting, 40);
    await Promise.all(all);
    assert.deepEqual(now, { held: 0, most: 4, read: 40, waiting: 0 });
  });

  test('of a node that does not answer do not keep those of others waiting', async () => {
    const { now, all } = reads(40, (index) => (index < 20 ? 'dead' : 'node-1'));
    await Promise.all(all.slice(20));
    assert.deepEqual([now.read, now.most, now.held], [20, 4, 2]);
  });

  test('that wait are not waited for any more once the leadership ends', async () => {
    const places = new LogPlaces();
    for (const node of ['a', 'a', 'b', 'b']) await places.take(node, NEVER);
    const closing = new AbortController();
    const waiting = places.take('c', closing.signal);
    closing.abort(new Error('over'));
    await assert.rejects(waiting, /over/);
    await assert.rejects(places.take('c', closing.signal), /over/);
  });
});
