/** Sessions at a steady rate, from a pool that is filled again meanwhile. */
import type { Ground } from './ground.ts';
import { halves, type Pace, paced } from './pace.ts';
import { withPeer } from './peer/peer.ts';
import { Pool } from './pool.ts';
import type { Outcome } from './run.ts';
import { count } from './settings.ts';
import { withSmallClass } from './small-class.ts';
import { startsPerSecond } from './start-rate.ts';
import { shown } from './table.ts';

const RUNS = count(3, 1);
const REPLICAS = 20;
const SECONDS = 20;
const SHARE = 0.8;

/** Runs at a share of the rate at which the nodes start pods, measured before each, and the same of agent-sandbox's claims. */
export function sustained(ground: Ground): Promise<Outcome> {
  return withSmallClass(ground, (ofClass, template) =>
    withPeer(ground, template, async (claiming) => {
      const [own, other] = [new Runs(), new Runs()];
      for (let i = 0; i < RUNS; i++) {
        const rate = await startsPerSecond(ground, template);
        const pace = { perSecond: SHARE * rate, seconds: SECONDS };
        own.add(pace, ...(await ours(ground, ofClass, pace, i)));
        if (claiming) other.add(pace, await claiming.sustained(REPLICAS, pace));
      }
      const rows = [{ id: 'sustained' as const, ...own.shown('each deleted with its result') }];
      return claiming ? { rows, peer: { sustained: other.shown('each claim ended when Ready') } } : { rows };
    }),
  );
}

/** Latencies in the order of the sessions' creation, and how many ran on pods of the pool. */
async function ours(ground: Ground, ofClass: string, pace: Pace, run: number): Promise<[number[], string]> {
  const pool = await Pool.open(ground, { class: ofClass, replicas: REPLICAS });
  const ran = await paced(pace, async (index) => {
    const name = `sustained-${run}-${index}`;
    const one = await ground.oneTurn(name, { class: ofClass });
    // The nodes need room for the later ones.
    await ground.delete(name);
    return one;
  });
  const warm = ran.filter(({ podUID }) => pool.has(podUID)).length;
  await pool.delete();
  await ground.gone();
  return [ran.map(({ ms }) => ms), `${warm} of ${ran.length} on pods of the pool`];
}

/** Runs of one kind, as a row shows them. */
class Runs {
  readonly #values: number[] = [];
  readonly #texts: string[] = [];

  add({ perSecond }: Pace, latencies: readonly number[], more = ''): void {
    const { first, second, ratio } = halves(latencies);
    this.#values.push(ratio);
    const text = `${shown(perSecond)}/s: ${shown(first)} → ${shown(second)} ms`;
    this.#texts.push(more ? `${text}, ${more}` : text);
  }

  shown(how: string): { values: readonly number[]; note: string } {
    return { values: this.#values, note: `${how}; ${this.#texts.join('; ')}` };
  }
}
