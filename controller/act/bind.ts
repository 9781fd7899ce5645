import { defined } from '../../core/defined.ts';
import { RESEALS_SINCE } from '../../core/frames/catalogue.ts';
import { stateKey } from '../../core/frames/seal.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { learn } from '../observed/memory.ts';
import type { World } from '../observed/world.ts';
import type { Effective } from '../settings/effective.ts';
import type { Kept } from '../settings/persistence.ts';
import { readContents } from './bind-contents.ts';
import { keyMissing, protocolProblem } from './bind-problem.ts';
import type { ReconcileContext } from './context.ts';
import { keepsWorkspace } from './workspace.ts';

/** Note for the agent of a later incarnation about what it finds again. */
function restoreNote({ state }: Kept, workspaceReset: boolean): string {
  const found = [...(state ? ['the state directory'] : []), ...(workspaceReset ? [] : ['the working directory'])];
  if (found.length === 0) return 'This session goes on in a new pod: nothing of the former one was kept.';
  const are = found.length === 1 ? 'is as the last turn left it' : 'are as the last turn left them';
  return `This session goes on in a new pod: ${found.join(' and ')} ${are}, everything else was reset.`;
}

/** Binds an unbound runner to the session and gives it the committed state, sealed as it is. */
export async function bindRunner(context: ReconcileContext, settings: Effective): Promise<void> {
  const { effects, world, memory, key } = context;
  const { session, installation } = world;
  const { podUID } = world.link ?? {};
  const link = effects.links.get(podUID);
  if (!link || podUID === undefined) return;
  const { current } = effects.keys;
  const known = session.status?.state?.keyId ?? current.id;
  const master = effects.keys.byId.get(known);
  const problem = protocolProblem(world, settings) ?? (master ? undefined : keyMissing("The session's state", known));
  learn(memory, { fact: 'StartProblem', problem });
  if (!master || problem) return;
  const { kept } = settings;
  const incarnation = session.status?.incarnation ?? 0;
  const workspaceReset = incarnation > 1 && !(kept.workspace && (await keepsWorkspace(context)));
  const contents = await readContents(context, settings.files, podUID);
  if (!contents) return;
  const { files, environment } = contents;
  const { state } = session.status ?? {};
  const { name, namespace, uid } = session.metadata;
  const keyOf = (id: string, of: Buffer) => ({ keyId: id, key: stateKey(of, uid).toString('base64') });
  const reseals = known !== current.id && (world.link?.protocol ?? 0) >= RESEALS_SINCE;
  const limits = defined({ maxStateBytes: kept.maxStateBytes, maxPackedBytes: kept.maxPackedBytes });
  const isRestored = incarnation > 1 && (state || ranBefore(world));
  link.bind(
    {
      protocol: installation.protocol,
      session: { name, namespace, uid },
      incarnation,
      state: reseals ? keyOf(current.id, current.key) : keyOf(known, master),
      agent: settings.agent,
      limits: settings.limits,
      artifacts: settings.artifacts,
      ...(settings.redact.length > 0 && { redact: settings.redact }),
      ...defined({ heuristics: settings.heuristics }),
      ...(state && {
        restores: {
          ...{ digest: state.digest, incarnation: state.incarnation, seq: state.seq },
          ...(reseals && { sealedWith: keyOf(known, master) }),
        },
      }),
      ...((!kept.state || Object.keys(limits).length > 0) && { persistence: { state: kept.state, ...limits } }),
      ...(environment && { environment: environment.bound }),
      ...(kept.workspace && { workspace: { mountPath: kept.workspace.mountPath } }),
      ...(files.length > 0 && { files: { due: true as const } }),
      ...(settings.builds && { builds: true as const }),
      ...(isRestored && { restored: { workspaceReset, note: restoreNote(kept, workspaceReset) } }),
    },
    {
      state: contents.state,
      files,
      environment: environment && { digest: environment.bound.digest, sealed: environment.sealed },
    },
  );
  effects.log.info({ session: key, incarnation, restored: Boolean(state) }, 'runner bound');
}

/**
 * Reports whether an earlier incarnation was given a turn, in the status of the session or by a turn that it does not count
 * yet. A pod that the session never had leaves nothing to restore.
 */
function ranBefore({ session, turns }: World): boolean {
  const { lastTurn, incarnation = 0 } = session.status ?? {};
  const isEarlier = (of = incarnation) => of < incarnation;
  return (
    lastTurn !== undefined ||
    turns.some(({ status: { phase, attempt = 0, approval, podUID, incarnation: ranIn } }) => {
      if (isEarlier(approval?.incarnation) || attempt > (phase === 'Queued' ? 0 : 1)) return true;
      return isTerminal(phase) && podUID !== undefined && isEarlier(ranIn);
    })
  );
}
