/** Many sessions at once, from a pool of as many. */
import { type Shares, shareFigures, withShares } from './cpu-shares.ts';
import type { Ground } from './ground.ts';
import { NO_CHECKOUT, withPeer } from './peer/peer.ts';
import { Pool } from './pool.ts';
import type { Outcome } from './run.ts';
import { count } from './settings.ts';
import { withSmallClass } from './small-class.ts';
import { range } from './table.ts';

const BURSTS = count(6, 2);
const SESSIONS = 30;
const CPU = 'CPU of a session of a burst';

/**
 * Bursts of sessions and of agent-sandbox's claims by turns, each from a full pool, until the last has its result, and the CPU that
 * each takes.
 */
export function bursts(ground: Ground): Promise<Outcome> {
  return withSmallClass(ground, (ofClass, template) =>
    withPeer(ground, template, async (claiming) => {
      const values: number[] = [];
      const warm: number[] = [];
      const claims: number[] = [];
      const cpu: Shares[] = [];
      const claimsCpu: Shares[] = [];
      for (let i = 0; i < BURSTS; i++) {
        const pool = await Pool.open(ground, { class: ofClass, replicas: SESSIONS });
        const names = Array.from({ length: SESSIONS }, (_, session) => `burst-${i}-${session}`);
        const burst = await withShares(() =>
          Promise.all(names.map((name) => ground.oneTurn(name, { class: ofClass }))),
        );
        cpu.push(burst.shares);
        values.push(burst.ms);
        warm.push(burst.result.filter(({ podUID }) => pool.has(podUID)).length);
        await pool.delete();
        await ground.gone(...names);
        if (!claiming) continue;
        const { ms, shares } = await claiming.burst(SESSIONS);
        claims.push(ms);
        claimsCpu.push(shares);
      }
      const note = `${range(warm)} of ${SESSIONS} on pods of the pool`;
      if (!claiming) {
        return {
          rows: [{ id: 'burst', values, absent: NO_CHECKOUT, note }],
          figures: shareFigures(CPU, cpu, SESSIONS),
        };
      }
      return {
        figures: shareFigures(CPU, cpu, SESSIONS, { what: 'a claim of agent-sandbox', samples: claimsCpu }),
        rows: [{ id: 'burst', values, floors: { 'agent-sandbox': claims }, note }],
        peer: { burst: { values: claims, note: `${SESSIONS} claims Ready, pool of ${SESSIONS}` } },
      };
    }),
  );
}
