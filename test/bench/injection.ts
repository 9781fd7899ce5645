/** Cold-start cost of bringing the runner into an image, compared with an image that contains it. */
import {
  type Session,
  type SessionClass,
  sessionclasses,
  sessions,
  type Turn,
  turns,
} from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { busyboxImage } from '../e2e/support/any-images.ts';
import type { BenchCluster } from './cluster.ts';
import { compared, type Figure } from './figures.ts';
import { count } from './settings.ts';

const COLD = count(30, 2);

/** Cold sessions of either class, one after the other by turns. Rejects when a turn does not succeed. */
export async function injectionFigure(cluster: BenchCluster): Promise<Figure> {
  const { client, namespace } = cluster;
  const agent = { command: ['/bin/sh', '-c', 'cat'], input: 'Text', result: 'Text' };
  const spec = { agent, overrides: [], secrets: [] };
  const classes = {
    Embedded: spec,
    Injected: { ...spec, runner: 'Injected', image: busyboxImage },
  };
  const values: Record<keyof typeof classes, number[]> = { Embedded: [], Injected: [] };
  const nameOf = (runner: string) => `${namespace}-${runner.toLowerCase()}`;
  try {
    for (const [runner, own] of Object.entries(classes)) {
      const object = { metadata: { name: nameOf(runner) }, spec: own };
      await client.create(sessionclasses, object as unknown as SessionClass);
    }
    // The first of each warms caches.
    for (let i = 0; i <= COLD; i++) {
      for (const runner of ['Embedded', 'Injected'] as const) {
        const name = `${runner.toLowerCase()}-${i}`;
        const object = { metadata: { namespace, name }, spec: { class: nameOf(runner), turns: 'One', input: 'x' } };
        const create = () => client.create(sessions, object as unknown as Session);
        const { ms, object: turn } = await cluster.timed(turns, name, create, (found: Turn) =>
          isTerminal(found.status?.phase),
        );
        if (turn.status?.phase !== 'Succeeded') throw new Error(`turn ${name}: ${JSON.stringify(turn.status)}`);
        if (i > 0) values[runner].push(ms);
        await client.delete(sessions, { namespace, name });
        await cluster.noPods();
      }
    }
  } finally {
    for (const runner of Object.keys(classes)) await client.delete(sessionclasses, { name: nameOf(runner) });
  }
  return compared('cold session with the runner brought into a busybox (Injected)', values.Injected, {
    what: 'with the runner’s own image (Embedded)',
    values: values.Embedded,
  });
}
