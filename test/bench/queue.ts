/** Sessions that wait for a slot: what a long queue costs those at its head. */
import { setTimeout as delay } from 'node:timers/promises';
import { sessions, turns } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { someAtOnce } from './at-once.ts';
import { WriteMeter } from './controller.ts';
import type { Figure } from './figures.ts';
import { type Ground, newSession } from './ground.ts';
import { count } from './settings.ts';
import { withSmallClass } from './small-class.ts';

const SLOTS = 10;
const WAITING = count(1000, 30);
const SECONDS = count(60, 10);

interface Pace {
  /** Sessions of one turn that ended, a second. */
  ended: number;
  /** Writes of the controller, a second. */
  writes: number;
}

/** Sessions through the slots while a short and while a long queue waits for them. */
export function queue(ground: Ground): Promise<Figure[]> {
  const work = async (ofClass: string): Promise<Figure[]> => {
    const short = await pace(ground, ofClass, SLOTS);
    const long = await pace(ground, ofClass, WAITING);
    return [
      {
        what: `sessions of one turn through ${SLOTS} slots while ${WAITING} wait`,
        measured: shown(long),
        beside: `while ${SLOTS} wait: ${shown(short)}`,
        difference: `× ${(long.ended / short.ended).toFixed(2)}`,
        values: { long, short },
      },
    ];
  };
  return withSmallClass(ground, work, { limits: { maxRunning: SLOTS } });
}

const shown = ({ ended, writes }: Pace) => `${ended.toFixed(1)}/s, ${writes.toFixed(0)} writes a second`;

/** Pace at which sessions end while as many wait: each that ends is deleted and followed by another. */
async function pace(ground: Ground, ofClass: string, waiting: number): Promise<Pace> {
  const { cluster, namespace } = ground;
  const { client } = cluster;
  const stop = new AbortController();
  const { signal } = stop;
  let next = 0;
  const create = async () => {
    const spec = { class: ofClass, turns: 'One', input: 'x' };
    await client.create(sessions, newSession(namespace, `queued-${waiting}-${next++}`, spec));
  };
  const ended = new Set<string>();
  const { metadata } = await client.list(turns, { namespace, limit: 1 });
  const events = client.watch(turns, { namespace, resourceVersion: metadata.resourceVersion, signal });
  const follow = async () => {
    for await (const event of events) {
      if (event.type !== 'MODIFIED' || !isTerminal(event.object.status?.phase)) continue;
      const { session } = event.object.spec;
      if (ended.has(session)) continue;
      ended.add(session);
      await client.delete(sessions, { namespace, name: session });
      await create();
    }
  };
  const following = follow().catch((error) => {
    if (!signal.aborted) throw error;
  });
  // A failure is told once all sessions are created.
  following.catch(() => {});
  try {
    await someAtOnce(waiting + SLOTS, create);
    using meter = await WriteMeter.open(client);
    const [endedBefore, writesBefore] = [ended.size, await meter.read()];
    const started = performance.now();
    await Promise.race([delay(SECONDS * 1000), following]);
    const seconds = (performance.now() - started) / 1000;
    return { ended: (ended.size - endedBefore) / seconds, writes: ((await meter.read()) - writesBefore) / seconds };
  } finally {
    stop.abort(new Error('the pace is measured'));
    await following.catch(() => {});
    await ground.clear();
  }
}
