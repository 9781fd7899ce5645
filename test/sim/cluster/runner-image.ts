import { PROTOCOL_VERSION } from '../../../core/frames/messages.ts';

/** Protocol versions of the releases in a world with upgrades: some are one apart, some two. */
export const PROTOCOLS = [PROTOCOL_VERSION, PROTOCOL_VERSION + 1, PROTOCOL_VERSION + 2] as const;

/**
 * Protocol version whose runners stand for those from before artifacts: they have no BERTH_OUTPUT_DIR, whatever the
 * controller asks for. The numbers only say which releases understand each other.
 */
export const WITHOUT_ARTIFACTS = PROTOCOLS[2];

/** Name of the runner image of a release; the version stands in it. */
export const runnerImage = (protocol: number) => `runner-of-protocol-${protocol}`;

/** Protocol version of the runner in an image. An image of a user's own is understood by every release. */
export function protocolOf(image: string): number {
  return PROTOCOLS.find((protocol) => image === runnerImage(protocol)) ?? PROTOCOLS[1];
}
