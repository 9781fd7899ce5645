/** Sessions that take the pod of a pool, and sessions that find it drained. */
import { sessions } from '../../core/resources/kinds.ts';
import { eventually } from '../support/eventually.ts';
import type { Ground } from './ground.ts';
import { Pool } from './pool.ts';
import type { Outcome } from './run.ts';
import { SAMPLES } from './settings.ts';

/** Each start beside the floors of its kind: on a ready pod, while the pool has just lost its pod, and without a pool. */
export async function pools(ground: Ground): Promise<Outcome> {
  const { floors } = ground;
  const warm: number[] = [];
  const beside: Record<'F-write' | 'F-attach' | 'F-spawn', number[]> = { 'F-write': [], 'F-attach': [], 'F-spawn': [] };
  const drained: number[] = [];
  const cold: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    const [ofCold, ofWarm] = [`pool-cold-${i}`, `pool-warm-${i}`];
    const [ofLast, ofDrained] = [`pool-last-${i}`, `pool-drained-${i}`];
    cold.push((await ground.oneTurn(ofCold)).ms);
    await ground.gone(ofCold);

    const pool = await Pool.open(ground);
    beside['F-write'].push(await floors.write());
    beside['F-attach'].push(await floors.attach());
    beside['F-spawn'].push(await ground.spawn());
    const onPool = await ground.oneTurn(ofWarm);
    pool.claimed(ofWarm, onPool.podUID);
    warm.push(onPool.ms);

    await pool.full();
    const taking = ground.oneTurn(ofLast);
    taking.catch(() => {});
    await hasPod(ground, ofLast);
    const late = await ground.oneTurn(ofDrained);
    if (pool.has(late.podUID)) pool.claimed(ofDrained, late.podUID);
    drained.push(late.ms);
    pool.claimed(ofLast, (await taking).podUID);

    await pool.delete();
    await ground.gone(ofWarm, ofLast, ofDrained);
  }
  return {
    rows: [
      { id: 'warm', values: warm, floors: beside, note: 'pool of 1' },
      { id: 'drained', values: drained, floors: { cold }, note: 'pool of 1, which is filled again meanwhile' },
    ],
  };
}

function hasPod({ cluster, namespace }: Ground, name: string): Promise<unknown> {
  const isNamed = async () => {
    const { items } = await cluster.client.list(sessions, { namespace, fieldSelector: `metadata.name=${name}` });
    return items[0]?.status?.podName;
  };
  return eventually(isNamed, { what: `session ${name} has taken the pod` });
}
