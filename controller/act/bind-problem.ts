import { type LaterControlKind, takes } from '../../core/frames/catalogue.ts';
import { understand } from '../../core/frames/messages.ts';
import type { CachedSession, Problem, World } from '../observed/world.ts';
import type { Effective } from '../settings/effective.ts';

/** Who needs a control line that runners of earlier protocols do not have. */
interface Need {
  isNeeded(session: CachedSession, settings: Effective): boolean;
  /** Name by which users know what such a runner lacks. */
  what: string;
}

const NEEDS: { readonly [K in LaterControlKind]: Need } = {
  files: { isNeeded: (_, { files }) => files.length > 0, what: 'agent.files' },
  environment: {
    isNeeded: ({ status }, { builds }) => status?.environment !== undefined || builds,
    what: 'environments',
  },
};

/** Problem with the protocol of the runner, which keeps it from being bound to the session; undefined when there is none. */
export function protocolProblem({ session, installation, link }: World, settings: Effective): Problem | undefined {
  const { protocol = 0, phase } = link ?? {};
  const image = `The runner in image "${settings.image}" speaks protocol ${protocol}`;
  // A runner that an earlier leader has bound still gets what it lacks; `suspend` gives it up.
  if (phase !== 'Bound' && !understand(protocol, installation.protocol)) {
    return unsupported(`${image}, the controller ${installation.protocol}`);
  }
  for (const [kind, { isNeeded, what }] of Object.entries(NEEDS) as [LaterControlKind, Need][]) {
    if (isNeeded(session, settings) && !takes(protocol, kind)) return unsupported(`${image}, which has no ${what}`);
  }
  return undefined;
}

const unsupported = (text: string): Problem => ({
  reason: 'ProtocolUnsupported',
  message: `${text}; use the image of this release.`,
});

/** Problem of a state or an environment whose master key is not known. */
export const keyMissing = (what: string, keyId: string): Problem => ({
  reason: 'StateKeyUnknown',
  message: `${what} was sealed with master key "${keyId}", which the controller does not have; put it back into the Secret and restart the controller.`,
});
