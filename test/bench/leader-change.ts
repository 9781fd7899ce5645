import { setTimeout as delay } from 'node:timers/promises';
import { signal } from '../e2e/support/node.ts';
import { fresh, replicas, scale } from './controller.ts';
import type { Ground } from './ground.ts';
import type { Outcome } from './run.ts';
import { count } from './settings.ts';

const SAMPLES = count(10, 2);

/** Time for which a leader has led when it is killed: until then it may wait for requests of an earlier one. */
const SETTLED_MS = 6000;

/** Seconds from a SIGKILL of a new leader's process until `work` is done. */
export async function secondsAfterKill(work: () => Promise<unknown>): Promise<number> {
  const { targets } = await fresh();
  await delay(SETTLED_MS);
  const started = performance.now();
  await signal('KILL', targets);
  await work();
  return (performance.now() - started) / 1000;
}

/** Seconds until a session that is created right after the kill has its first result. */
async function killed(ground: Ground, of: number): Promise<number[]> {
  await scale(of);
  const values: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    const name = `killed-${of}-${i}`;
    values.push(await secondsAfterKill(() => ground.oneTurn(name)));
    await ground.gone(name);
  }
  return values;
}

/** The leader killed, with one replica and with two. */
export async function leaderChange(ground: Ground): Promise<Outcome> {
  const before = await replicas();
  try {
    return {
      rows: [
        { id: 'leader-one', values: await killed(ground, 1) },
        { id: 'leader-two', values: await killed(ground, 2) },
      ],
    };
  } finally {
    await scale(before);
    await fresh();
  }
}
