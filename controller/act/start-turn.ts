import { defined } from '../../core/defined.ts';
import { turns } from '../../core/resources/kinds.ts';
import { bodyFacts } from '../caches/slim.ts';
import { learn } from '../observed/memory.ts';
import type { CachedTurn } from '../observed/world.ts';
import { limitsOf } from '../settings/granted.ts';
import type { ReconcileContext } from './context.ts';

/** Gives a turn that is written Running to the runner of the pod that it names, and to no other. */
export async function startTurn(context: ReconcileContext, turn: CachedTurn): Promise<void> {
  const { effects, world, memory, signal } = context;
  const { api, caches, links } = effects;
  const { session } = world;
  const { uid, name } = turn.metadata;
  const namespace = session.metadata.namespace;
  const live = memory.inputs.has(uid) ? undefined : await api.get(turns, { namespace, name }, { signal });
  const cached = caches.turnsNaming(namespace, session.metadata.name).find(({ metadata }) => metadata.uid === uid);
  const status = live?.status ?? cached?.status;
  if ((live && live.metadata.uid !== uid) || status?.phase !== 'Running') return;
  // The next decision is made upon what the turn says now.
  if (live && status.inputDigest !== undefined && bodyFacts(live.spec.input).digest !== status.inputDigest) return;
  const { index = 0, attempt = 1, podUID } = status;
  const input = live ? (live.spec.input ?? null) : memory.inputs.get(uid);
  const { turnMs, stallMs } = limitsOf({ spec: turn.spec, status }, world);
  const stall = Number.isFinite(stallMs) ? { stallMs } : {};
  const start = { turn: uid, name, index, attempt, input, timeoutMs: turnMs, ...stall };
  const { approval, startedAt, redactions } = status;
  if (approval?.decided) {
    const { decision, response, note } = approval.decided;
    links.get(podUID)?.resumeTurn({
      ...start,
      approval: {
        requestId: approval.id,
        decision,
        ...defined({ response, note }),
      },
      ranMs: approval.ranMs,
      ...defined({ startedAt, redactions }),
    });
  } else links.get(podUID)?.startTurn(start);
  learn(memory, { fact: 'InputSent', turn: uid, at: effects.clock.monotonic() });
}
