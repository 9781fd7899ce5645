/** SessionPools named `warm`, each with a class of its own. */
import type { TestContext } from 'vitest';
import { type Any, apply, get, remove, until } from './cluster.ts';

export const pool = (namespace: string, name: string, spec: object): object => ({
  apiVersion: 'berth.dev/v1alpha1',
  kind: 'SessionPool',
  metadata: { namespace, name },
  spec,
});

/** A class of the test's own, as the default class is, so that other tests take none of its slots. */
export async function makeClass(t: TestContext, namespace: string, change: object = {}): Promise<string> {
  const name = `pool-${namespace}`;
  const [ofDefault] = (await get(['sessionclasses', '--field-selector', 'metadata.name=default'])).items;
  await apply({
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'SessionClass',
    metadata: { name },
    spec: { ...ofDefault.spec, ...change },
  });
  t.onTestFinished(() => remove('sessionclass', name));
  return name;
}

export const readyOf = ({ status }: Any) => status?.conditions?.find(({ type }: Any) => type === 'Ready');
/** The pool once it is full, by a status that has counted so many starts of sessions. */
export const full = (namespace: string, starts = 0) => {
  const isFull = (found: Any) =>
    readyOf(found)?.reason === 'PoolFull' && found.status.claimed + found.status.missed >= starts;
  return until(namespace, 'sessionpool', 'warm', isFull, 180_000);
};

/** Pods of the pool that no session has claimed. */
export async function unclaimed(namespace: string): Promise<Any[]> {
  const { items } = await get(['pods', '-n', namespace, '-l', 'berth.dev/pool=warm,berth.dev/session-uid=']);
  return items.filter(({ metadata }: Any) => !metadata.deletionTimestamp);
}

/** Pods of the pool that sessions have claimed. The pool makes others at once. */
export async function claimed(namespace: string): Promise<Any[]> {
  return (await get(['pods', '-n', namespace, '-l', 'berth.dev/pool=warm,berth.dev/session-uid!='])).items;
}
