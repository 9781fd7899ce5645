/** The same cluster and the same image under kubernetes-sigs/agent-sandbox. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Pod } from '../../../core/kube/builtin.ts';
import { type Any, kubectl } from '../../e2e/support/cluster.ts';
import { loadImage } from '../../e2e/support/node.ts';
import type { Ground } from '../ground.ts';
import type { Outcome } from '../run.ts';
import { agentSandbox, SAMPLES } from '../settings.ts';
import type { PeerMeasured } from '../table.ts';
import { buildPeer, peerObjects } from './build.ts';
import { Claiming } from './claiming.ts';

export const NO_CHECKOUT = 'no checkout: AGENT_SANDBOX=/path';

const NAMESPACE = 'agent-sandbox-system';

const WARM = { pool: 12, pauseMs: 1000 };

const apply = (objects: Any[]) =>
  kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], {
    input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
  });
const remove = (objects: Any[]) =>
  kubectl(['delete', '--ignore-not-found', '--timeout=300s', '-f', '-'], {
    input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
  });

/**
 * Installs it for the time of `work`, with a template like `template`. Without a checkout `work` gets none, and the outcome
 * says so.
 */
export async function withPeer(
  ground: Ground,
  template: Pod,
  work: (claiming?: Claiming) => Promise<Outcome>,
): Promise<Outcome> {
  if (!agentSandbox) return { peer: NO_CHECKOUT, ...(await work()) };
  await loadImage(await buildPeer(agentSandbox));
  const { kinds, rest } = await peerObjects(agentSandbox);
  try {
    await apply(kinds);
    await apply(rest);
    await kubectl(['rollout', 'status', 'deployment/agent-sandbox-controller', '-n', NAMESPACE, '--timeout=180s']);
    await using claiming = await Claiming.start(ground, template);
    return await work(claiming);
  } finally {
    await remove(rest);
    await remove(kinds);
  }
}

/** Claims of agent-sandbox, one after the other, until they are Ready: no work is delivered by then. */
export function peer(ground: Ground): Promise<Outcome> {
  return withPeer(ground, ground.template, async (claiming) =>
    claiming ? { peer: { cold: await cold(claiming), warm: await warm(claiming) } } : {},
  );
}

async function cold(claiming: Claiming): Promise<PeerMeasured> {
  const values: number[] = [];
  await claiming.withPool(0, async (pool) => {
    for (let i = 0; i < SAMPLES; i++) {
      const claimed = await claiming.claim(pool);
      values.push(claimed.ms);
      await claiming.end(claimed);
      await claiming.noPods();
    }
  });
  return { values, note: 'claim → Ready, no work delivered' };
}

async function warm(claiming: Claiming): Promise<PeerMeasured> {
  const values: number[] = [];
  await claiming.withPool(WARM.pool, async (pool) => {
    for (let i = 0; i < SAMPLES; i++) {
      const started = performance.now();
      const claimed = await claiming.claim(pool);
      values.push(claimed.ms);
      await claiming.end(claimed);
      await delay(Math.max(0, WARM.pauseMs - (performance.now() - started)));
    }
  });
  return { values, note: `claim → Ready, one a second, pool of ${WARM.pool}` };
}
