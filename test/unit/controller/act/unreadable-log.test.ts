import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { ReconcileContext } from '../../../../controller/act/context.ts';
import { LogPlaces } from '../../../../controller/act/log-places.ts';
import { perform } from '../../../../controller/act/perform.ts';
import { ApiError, TransportError } from '../../../../core/kube/errors.ts';
import type { StoredTurn } from '../../../../core/resources/kinds.ts';
import type { TurnStatus } from '../../../../core/resources/turn.ts';
import { silentLogger } from '../../../../core/system.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aMemory, aPod, aSession, aWorld, POD_UID, RUNNING_STATUS, runningTurn } from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

const refused = (code: number, kind?: string) =>
  new ApiError({ code, reason: 'induced', message: 'induced', ...(kind ? { details: { kind } } : {}) });
/** Grace period of a node, milliseconds. */
const GRACE_MS = 60_000;
const CONTAINER_GONE = 'unable to retrieve container logs for containerd://e788ff6eb312b2594610893b7264098144fbab07';
const FILE_GONE =
  'failed to try resolving symlinks in path "/var/log/pods/team_x_u/session/0.log": lstat /var/log/pods/team_x_u: no such file or directory';

/** Reads of the log of an ended pod, which comes to what `answer` is at the time. */
function reading(answer: { text?: string; error?: Error }) {
  const clock = new VirtualClock();
  const session = aSession({ status: RUNNING_STATUS });
  const pod = aPod({ status: { phase: 'Succeeded' } });
  const turn = runningTurn('a');
  const memory = aMemory();
  const taken: string[] = [];
  const written: TurnStatus[] = [];
  const api = {
    get: async () => pod,
    podLog: async function* () {
      if (answer.text) for (const piece of [answer.text.slice(0, 9), answer.text.slice(9)]) yield Buffer.from(piece);
      if (answer.error) throw answer.error;
    },
    replace: async (_: unknown, object: { status: TurnStatus }) => {
      written.push(object.status);
      return { ...turn, status: object.status } as unknown as StoredTurn;
    },
  };
  const context = {
    key: 'team/notes',
    memory,
    signal: new AbortController().signal,
    world: aWorld({ session, pod, turns: [turn], now: clock.now() }),
    effects: {
      ...writesOver(api),
      clock,
      log: silentLogger,
      logPlaces: new LogPlaces(),
      withoutWorker: <R>(work: () => Promise<R>) => work(),
      leader: { identity: 'ctl_1', epoch: () => 1 },
      links: { get: () => undefined, open: () => ({ takeLog: (log: Buffer) => taken.push(log.toString()) }) },
    },
  } as unknown as ReconcileContext;
  const read = async () => perform({ do: 'ReadLog', pod }, context);
  const commit = async () => perform({ do: 'CommitLog', pod, turn }, context);
  return { answer, clock, memory, taken, written, read, commit };
}

describe('the log of an ended pod that cannot be read', () => {
  for (const [what, answer] of [
    ['an API server that cannot be reached', { error: new TransportError('connect ECONNREFUSED') }],
    ['an API server with too much to do', { error: refused(429) }],
    ['an API server that does not know yet what the controller may', { error: refused(403) }],
    ['an API server that does not know yet who the controller is', { error: refused(401) }],
    ['a kubelet that cannot be reached', { error: refused(500) }],
    ['a kubelet that was started anew and does not know the pod yet', { error: refused(404, 'pods/log') }],
    ['a node that has not come back yet', { error: refused(404, 'nodes') }],
    ['a container runtime that does not answer the kubelet', { text: CONTAINER_GONE }],
    ['a log file that is not there', { text: FILE_GONE }],
  ] as const) {
    test(`because of ${what} is tried again, and is there once that has passed`, async () => {
      const { clock, memory, taken, read, answer: now } = reading({ ...answer });
      for (let i = 0; i < 10; i++) {
        await assert.rejects(read());
        await clock.advance(5_000);
      }
      assert.equal(memory.incarnation.logRead, undefined);
      Object.assign(now, { text: 'what it printed', error: undefined });
      await read();
      assert.deepEqual([taken, memory.incarnation.logRead], [['what it printed'], { podUID: POD_UID }]);
    });
    test(`because of ${what} is given up after the node’s grace`, async () => {
      const { clock, memory, taken, read } = reading(answer);
      await assert.rejects(read());
      await clock.advance(GRACE_MS - 1);
      await assert.rejects(read());
      await clock.advance(1);
      await read();
      assert.deepEqual([taken, memory.incarnation.logRead], [[], { podUID: POD_UID }]);
    });
  }

  for (const [what, error] of [
    ['the kubelet refuses', refused(400)],
    ['does not exist', refused(404, 'pods')],
    ['does not exist, by whoever says no more', refused(404)],
  ] as const) {
    test(`of a pod that ${what} is given up at once`, async () => {
      const { memory, taken, read } = reading({ error });
      await read();
      assert.deepEqual([taken, memory.incarnation.logRead], [[], { podUID: POD_UID }]);
    });
  }

  test('has its own time at each trouble', async () => {
    const { clock, read, answer } = reading({ error: refused(500) });
    await assert.rejects(read());
    await clock.advance(GRACE_MS - 1);
    Object.assign(answer, { text: 'there', error: undefined });
    await read();
    await clock.advance(GRACE_MS);
    answer.error = refused(500);
    await assert.rejects(read());
  });

  test('without a runner does not become the turn’s log: the turn is lost once it is given up', async () => {
    const { clock, written, commit } = reading({ text: CONTAINER_GONE });
    await assert.rejects(commit(), /the kubelet: unable to retrieve/);
    await clock.advance(GRACE_MS);
    await commit();
    assert.deepEqual(
      written.map(({ phase, error }) => [phase, error?.code]),
      [['Failed', 'PodLost']],
    );
  });

  test('is told from what a program prints', async () => {
    for (const text of [
      `${CONTAINER_GONE}\n`,
      `I was ${CONTAINER_GONE}`,
      'failed to open log file "x": no',
      `${FILE_GONE}\nand more`,
    ]) {
      const { taken, read } = reading({ text });
      await read();
      assert.deepEqual(taken, [text]);
    }
  });
});
