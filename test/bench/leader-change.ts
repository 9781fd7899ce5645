import { setTimeout as delay } from 'node:timers/promises';
import { signal } from '../e2e/support/node.ts';
import { fresh, replicas, scale } from './controller.ts';
import type { Ground } from './ground.ts';
import type { Outcome } from './run.ts';
import { count } from './settings.ts';

const SAMPLES = count(30, 2);

/** Time for which a leader has led when it is killed: until then it may wait for requests of an earlier one. */
export const SETTLED_MS = 6000;

/** SIGKILL of the leader's process, until a session that is created right then has its first result; seconds. */
async function killed(ground: Ground, of: number): Promise<number[]> {
  await scale(of);
  const values: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    const { targets } = await fresh();
    await delay(SETTLED_MS);
    const name = `killed-${of}-${i}`;
    const started = performance.now();
    await signal('KILL', targets);
    await ground.oneTurn(name);
    values.push((performance.now() - started) / 1000);
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
