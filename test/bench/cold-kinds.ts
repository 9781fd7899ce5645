/** Cold sessions of classes whose pods are made in other ways than those of the default class. */
import { type SessionClass, sessionclasses, sessions, turns } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { busyboxImage } from '../e2e/support/any-images.ts';
import { compared, type Figure } from './figures.ts';
import { type Ground, newSession } from './ground.ts';
import { count } from './settings.ts';

const SAMPLES = count(30, 2);

const agent = { command: ['/bin/sh', '-c', 'cat'], input: 'Text', result: 'Text' };
const CLASSES = {
  embedded: { agent },
  injected: { agent, runner: 'Injected', image: busyboxImage },
  scratch: { agent, sandbox: { readOnlyRootFilesystem: false, scratch: 'Image' } },
};
type Kind = keyof typeof CLASSES;
const KINDS = Object.keys(CLASSES) as Kind[];

/** Sessions of the classes and bare pods, one after the other by turns. Rejects when a turn does not succeed. */
export async function coldKinds(ground: Ground): Promise<Figure[]> {
  const { cluster, namespace, floors } = ground;
  const { client } = cluster;
  const values: Record<Kind | 'bare', number[]> = { embedded: [], injected: [], scratch: [], bare: [] };
  const classOf = (kind: Kind) => `${namespace}-${kind}`;
  try {
    for (const kind of KINDS) {
      const object = { metadata: { name: classOf(kind) }, spec: { overrides: [], secrets: [], ...CLASSES[kind] } };
      await client.create(sessionclasses, object as unknown as SessionClass);
    }
    // The first of each warms caches.
    for (let i = 0; i <= SAMPLES; i++) {
      const bare = await floors.bare();
      if (i > 0) values.bare.push(bare);
      for (const kind of KINDS) {
        const name = `${kind}-${i}`;
        const spec = { class: classOf(kind), agent: undefined, turns: 'One', input: 'x' };
        const create = () => client.create(sessions, newSession(namespace, name, spec));
        const { ms, object: turn } = await cluster.timed(turns, name, create, (found) =>
          isTerminal(found.status?.phase),
        );
        if (turn.status?.phase !== 'Succeeded') throw new Error(`turn ${name}: ${JSON.stringify(turn.status)}`);
        if (i > 0) values[kind].push(ms);
        await ground.gone(name);
      }
    }
  } finally {
    for (const kind of KINDS) await client.delete(sessionclasses, { name: classOf(kind) });
  }
  const beside = { what: 'of the runner’s own image, with two volumes', values: values.embedded };
  return [
    compared('cold session with the runner brought into a busybox (Injected)', values.injected, beside),
    compared('cold session without volumes (scratch: Image)', values.scratch, beside),
    compared('the same', values.scratch, { what: 'bare pod without volumes, created → Ready', values: values.bare }),
  ];
}
