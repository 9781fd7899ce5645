/** Sessions that take the pod of a pool, and sessions that find it drained. */
import { pods } from '../../core/kube/resources.ts';
import { type SessionPool, sessionpools, sessions, turns } from '../../core/resources/kinds.ts';
import { LABEL_POOL } from '../../core/resources/names.ts';
import { eventually } from '../support/eventually.ts';
import type { Ground } from './ground.ts';
import type { Outcome } from './run.ts';
import { SAMPLES } from './settings.ts';

const NAME = 'default';

/** Each start beside the floors of its kind: on a ready pod, while the pool has just lost its pod, and without a pool. */
export async function pools(ground: Ground): Promise<Outcome> {
  const { client } = ground.cluster;
  const { namespace, floors } = ground;
  const warm: number[] = [];
  const beside: Record<'F-write' | 'F-attach' | 'F-spawn', number[]> = { 'F-write': [], 'F-attach': [], 'F-spawn': [] };
  const drained: number[] = [];
  const cold: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    cold.push(await ground.oneTurn(`pool-cold-${i}`));
    await ground.gone(`pool-cold-${i}`);

    await client.create(sessionpools, newPool(namespace));
    await full(ground);
    const ready = await uids(ground);
    beside['F-write'].push(await floors.write());
    beside['F-attach'].push(await floors.attach());
    beside['F-spawn'].push(await ground.spawn());
    warm.push(await ground.oneTurn(`pool-warm-${i}`));
    await ranOn(ground, `pool-warm-${i}`, ready, true);

    await full(ground);
    const taking = ground.oneTurn(`pool-last-${i}`);
    await claimed(ground, `pool-last-${i}`);
    drained.push(await ground.oneTurn(`pool-drained-${i}`));
    await ranOn(ground, `pool-drained-${i}`, await uids(ground), false);
    await taking;

    await client.delete(sessionpools, { namespace, name: NAME });
    await ground.gone(`pool-warm-${i}`, `pool-last-${i}`, `pool-drained-${i}`);
  }
  return {
    rows: [
      { id: 'warm', values: warm, floors: beside, note: 'pool of 1' },
      { id: 'drained', values: drained, floors: { cold }, note: 'pool of 1, which is filled again meanwhile' },
    ],
  };
}

function newPool(namespace: string): SessionPool {
  const metadata = { namespace, name: NAME };
  const spec = { class: 'default', replicas: 1 };
  return { apiVersion: 'berth.dev/v1alpha1', kind: 'SessionPool', metadata, spec };
}

function full({ cluster, namespace }: Ground): Promise<unknown> {
  const ready = async () => {
    const { metadata, status } = await cluster.client.get(sessionpools, { namespace, name: NAME });
    return status?.ready === 1 && status.observedGeneration === metadata.generation;
  };
  return eventually(ready, { what: 'the pool has a ready pod', timeoutMs: 120_000 });
}

function claimed({ cluster, namespace }: Ground, name: string): Promise<unknown> {
  const hasPod = async () => {
    const { items } = await cluster.client.list(sessions, { namespace, fieldSelector: `metadata.name=${name}` });
    return items[0]?.status?.podName;
  };
  return eventually(hasPod, { what: `session ${name} has taken the pod` });
}

/** Throws where the turn of the session has run on another pod than the row is about; `ofPool`: pods of the pool. */
async function ranOn(ground: Ground, name: string, ofPool: readonly string[], wanted: boolean): Promise<void> {
  const { cluster, namespace } = ground;
  const { status } = await cluster.client.get(turns, { namespace, name });
  if (ofPool.includes(status?.podUID ?? '') !== wanted) throw new Error(`session ${name} ran on pod ${status?.podUID}`);
}

/** UIDs of the pods that the pool has made, claimed or not. */
async function uids({ cluster, namespace }: Ground): Promise<string[]> {
  const { items } = await cluster.client.list(pods, { namespace, labelSelector: `${LABEL_POOL}=${NAME}` });
  return items.map(({ metadata }) => metadata.uid);
}
