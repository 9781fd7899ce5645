import { PROTOCOL_VERSION } from '../../core/frames/messages.ts';
import { stateKey } from '../../core/frames/seal.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import type { Effective } from '../decide/effective.ts';
import type { Pass } from './context.ts';

/** Why the runner is told that it was restored, in words for the agent. */
const RESTORE_NOTE =
  'This session goes on in a new pod: the state directory is as the last turn left it, everything else was reset.';

/** Binds an unbound runner to the session and gives it the committed state, sealed as it is. */
export async function bindRunner(pass: Pass, settings: Effective): Promise<void> {
  const { effects, world, memory, key } = pass;
  const { session } = world;
  const link = effects.links.get(world.link?.podUID);
  if (!link) return;
  const protocol = world.link?.protocol ?? 0;
  if (Math.abs(protocol - PROTOCOL_VERSION) > 1) {
    memory.startProblem = {
      reason: 'ProtocolUnsupported',
      message: `The runner in image "${settings.image}" speaks protocol ${protocol}, the controller ${PROTOCOL_VERSION}; use the image of this release.`,
    };
    return;
  }
  const state = session.status?.state;
  const keyId = state?.keyId ?? effects.keys.current.id;
  const master = effects.keys.byId.get(keyId);
  if (!master) {
    memory.startProblem = {
      reason: 'StateKeyUnknown',
      message: `The session's state was sealed with master key "${keyId}", which the controller does not have; put it back into the Secret and restart the controller.`,
    };
    return;
  }
  memory.startProblem = undefined;
  const sealed = state ? await load(pass, state) : undefined;
  link.bind(
    {
      protocol: PROTOCOL_VERSION,
      session: {
        name: session.metadata.name,
        namespace: session.metadata.namespace as string,
        uid: session.metadata.uid,
      },
      incarnation: session.status?.incarnation ?? 0,
      state: { keyId, key: stateKey(master, session.metadata.uid).toString('base64') },
      agent: settings.agent,
      ...(state ? { restores: { digest: state.digest, incarnation: state.incarnation, seq: state.seq } } : {}),
      ...((session.status?.incarnation ?? 0) > 1 ? { restored: { workspaceReset: true, note: RESTORE_NOTE } } : {}),
    },
    state && sealed ? { digest: state.digest, keyId: state.keyId, sealed } : undefined,
  );
  effects.log.info(
    { session: key, incarnation: session.status?.incarnation, restored: Boolean(state) },
    'runner bound',
  );
}

async function load({ effects: { store }, world: { session }, signal }: Pass, state: StateRef): Promise<Buffer> {
  if (state.inline !== undefined) return Buffer.from(state.inline, 'base64');
  const { uid, namespace } = session.metadata;
  return store.get(
    { sessionUID: uid, namespace: namespace as string, incarnation: state.incarnation, seq: state.seq, kind: 'State' },
    signal,
  );
}
