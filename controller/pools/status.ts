import { defined } from '../../core/defined.ts';
import { LABEL_POOL, LABEL_SESSION_UID } from '../../core/resources/names.ts';
import { type Reason, reasons } from '../../core/resources/reasons.ts';
import type { SessionPoolStatus } from '../../core/resources/sessionpool.ts';
import type { Problem } from '../observed/world.ts';
import { withCondition } from '../status/conditions.ts';
import type { PoolWorld } from './pool-world.ts';

/** Numbers of a pool's pods after a decision, and the problem that keeps more from being ready. */
export interface PoolFigures {
  wanted: number;
  replicas: number;
  ready: number;
  stale: number;
  problem: Problem | undefined;
}

/** The pool's status after a reconcile. */
export function poolStatus(world: PoolWorld, figures: PoolFigures): SessionPoolStatus {
  const { pool, counts, now } = world;
  const { generation, name } = pool.metadata;
  const { claimed = 0, missed = 0, conditions } = pool.status ?? {};
  const { reason, message } = whyReady(world, figures);
  const isFull = reason === 'PoolFull';
  return {
    ...defined({ observedGeneration: generation }),
    replicas: figures.replicas,
    ready: figures.ready,
    claimed: claimed + counts.claimed,
    missed: missed + counts.missed,
    selector: `${LABEL_POOL}=${name},${LABEL_SESSION_UID}=`,
    conditions: withCondition(
      conditions,
      'Ready',
      { status: isFull ? 'True' : 'False', reason, message },
      now,
      generation,
    ),
  };
}

function whyReady(world: PoolWorld, { wanted, replicas, ready, stale, problem }: PoolFigures): Problem {
  const { pool, template, room, most, blocked } = world;
  const say = (reason: Reason, message: string = reasons[reason]): Problem => ({ reason, message });
  if (!('hash' in template)) return template;
  if (ready >= wanted && stale === 0)
    return say('PoolFull', `${wanted === 1 ? '1 pod is' : `${wanted} pods are`} ready.`);
  if (most !== undefined && most < wanted) {
    const words = `spec.replicas is ${wanted}, and there are at most ${most} running slots for class "${pool.spec.class}" in namespace "${pool.metadata.namespace}"; lower spec.replicas, or raise the limit.`;
    return say('PoolTooLarge', words);
  }
  if (blocked)
    return say(
      'PoolGivesWay',
      `Session ${blocked.session} waits (${blocked.reason}); the pool is filled again afterwards.`,
    );
  if (replicas < wanted && !room.free) {
    if (room.why === 'Waited') return say('PoolGivesWay', `${room.message} The pool is filled again afterwards.`);
    return say(room.why === 'Full' ? 'PoolAtCapacity' : 'CapacityUnknown', room.message);
  }
  if (problem) return problem;
  if (stale > 0) return say('PoolOutdated');
  return say('PoolFilling', `${ready} of ${wanted} pods are ready.`);
}
