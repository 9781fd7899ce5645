import { ApiError, isAlreadyExists, isConflict } from '../../core/kube/errors.ts';
import { pods } from '../../core/kube/resources.ts';
import { networkPolicyName } from '../../core/resources/names.ts';
import { attachability } from '../link/links.ts';
import { NetworkPolicyTaken } from '../network/policies.ts';
import { learn } from '../observed/memory.ts';
import { isOurs } from '../observed/session-pods.ts';
import type { CachedTurn, World } from '../observed/world.ts';
import { sessionPod } from '../pod/pod.ts';
import { refusal } from '../pod/refusal.ts';
import { runnerlessPod } from '../pod/runnerless-pod.ts';
import type { Effective } from '../settings/effective.ts';
import { podEvent } from '../status/events.ts';
import type { ReconcileContext } from './context.ts';
import { linkSession } from './link-session.ts';
import { runnerlessTurn } from './runnerless.ts';
import { ensureWorkspace } from './workspace.ts';

/** Creates the pod of the incarnation that the session owns. The next decision learns why it could not be created. */
export async function createPod(context: ReconcileContext, settings: Effective, turn?: CachedTurn): Promise<void> {
  const { effects, world, memory, signal, key } = context;
  const { api, links, log } = effects;
  const incarnation = world.session.status?.incarnation ?? 0;
  const runnerless = turn && (await runnerlessTurn(context, turn));
  if (turn && !runnerless) return;
  const common = sessionPod(world.session, incarnation, settings);
  const pod = runnerless ? runnerlessPod(common, world.session, settings, runnerless) : common;
  try {
    await ensureNetworkPolicy(context);
    if (settings.kept.workspace) await ensureWorkspace(context, settings.kept.workspace);
  } catch (error) {
    if (error instanceof ApiError && !isConflict(error)) {
      const problem = memory.incarnation.startProblem ?? refusal(error);
      learn(memory, { fact: 'CreationFailed', problem, since: failingSince(world, effects.clock.now()) });
    }
    throw error;
  }
  try {
    const created = await api.create(pods, pod, { signal });
    learn(memory, { fact: 'PodCreated' });
    log.info({ session: key, pod: created.metadata.name, incarnation }, 'pod created');
    effects.notify(world.session, podEvent(world, created.metadata.name));
    if (!runnerless) links.open(created, linkSession(context)).open({ ...attachability(created), fresh: true });
  } catch (error) {
    if (isAlreadyExists(error)) return adopt(context, pod.metadata.name);
    if (error instanceof ApiError && !isConflict(error)) {
      const since = failingSince(world, effects.clock.now());
      learn(memory, { fact: 'CreationFailed', problem: refusal(error), since });
    }
    throw error;
  }
}

/** Start of the failures, milliseconds since the epoch: as an earlier leader has written it, else now. */
function failingSince({ session }: World, now: number): number {
  const condition = (name: string) => session.status?.conditions?.find(({ type }) => type === name);
  // The admission says `Starting`, and only a failure something else.
  if ((condition('Ready')?.reason ?? 'Starting') === 'Starting') return now;
  return Date.parse(condition('Admitted')?.lastTransitionTime ?? '') || now;
}

/** Takes over a pod that exists: an earlier leader made it, or this one whose answer was lost. A pod of somebody else is refused. */
async function adopt({ effects, world, memory, signal }: ReconcileContext, name: string): Promise<void> {
  const { session } = world;
  const found = await effects.api.get(pods, { namespace: session.metadata.namespace, name }, { signal });
  if (isOurs(found, session)) return;
  const message = `Pod "${name}" exists and was not made by Berth for this session; delete it.`;
  learn(memory, { fact: 'StartProblem', problem: { reason: 'PodForbidden', message } });
  throw new Error(message);
}

/**
 * Applies the network policy before the pod exists. Rejects where that fails, and puts the problem into the session's
 * memory where a person must act.
 */
async function ensureNetworkPolicy({ effects, world, memory, signal }: ReconcileContext): Promise<void> {
  const { metadata, spec } = world.session;
  try {
    await effects.networkPolicies.ensure(metadata.namespace, spec.class, signal);
  } catch (error) {
    if (error instanceof NetworkPolicyTaken) {
      learn(memory, { fact: 'StartProblem', problem: { reason: 'PodForbidden', message: error.message } });
    } else if (error instanceof ApiError && !isConflict(error)) {
      const problem = refusal(error, `NetworkPolicy ${networkPolicyName(spec.class)}`);
      learn(memory, { fact: 'StartProblem', problem });
    }
    throw error;
  }
}
