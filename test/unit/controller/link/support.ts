import assert from 'node:assert/strict';
import { Link } from '../../../../controller/link/link.ts';
import type { LinkOptions } from '../../../../controller/link/options.ts';
import type { LinkView } from '../../../../controller/observed/link-view.ts';
import { type Channel, frameText, readyText } from '../../../../core/frames/encode.ts';
import { PROTOCOL_VERSION } from '../../../../core/frames/messages.ts';
import { frameKeys } from '../../../../core/frames/seal.ts';
import { packMessage } from '../../../../core/frames/wire.ts';
import type { AttachOptions, PodStream, StreamEnd } from '../../../../core/kube/types.ts';
import { linkOptions } from '../../../support/link-options.ts';
import { PodRunner } from '../../../support/pod-runner.ts';
import { seededRandom } from '../../../support/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

export const KEY = Buffer.alloc(32, 7);
const BOOT = 'ab'.repeat(16);
export const BIND = {
  protocol: PROTOCOL_VERSION,
  session: { name: 'notes', namespace: 'team', uid: 'session-1' },
  incarnation: 1,
  state: { keyId: 'k', key: KEY.toString('base64') },
  agent: { driver: 'Command', command: ['agent'], args: [], env: [], input: 'Stdin', result: 'Json' },
} as const;
export const TURN = { turn: 'turn-1', name: 'a', index: 1, attempt: 1, input: null, timeoutMs: 600_000 };

/** A link to the pod `uid`. */
export function linkTo(
  api: LinkOptions['api'],
  clock: VirtualClock,
  change: Partial<LinkOptions> & { uid?: string } = {},
): Link {
  const { uid = 'pod-1', ...options } = change;
  const pod = { namespace: 'team', name: uid, uid };
  const link = new Link({ ...linkOptions(api, { pod, key: KEY, clock, random: seededRandom() }), ...options });
  link.open({ scheduled: true, running: false, node: 'node-1' });
  return link;
}

type Change = Omit<Partial<LinkOptions>, 'pod' | 'clock' | 'epoch' | 'onChange'> & {
  podUID?: string;
  pod?: PodRunner;
  clock?: VirtualClock;
  /** Epoch of this leader. */
  epoch?: number;
  onChange?: (view: LinkView) => void;
};

/** A link to an honest runner. A test may change the epoch. */
export function setUp(change: Change = {}) {
  const { clock = new VirtualClock(), pod: given, podUID = 'pod-1', epoch: _, onChange, ...options } = change;
  const pod = given ?? new PodRunner(clock, seededRandom());
  const later: number[] = [];
  const answers = { at: Number.NEGATIVE_INFINITY };
  const link = linkTo(pod, clock, {
    uid: podUID,
    answers,
    epoch: () => change.epoch ?? 5,
    onChange: () => onChange?.(link.view),
    onLaterEpoch: (epoch) => later.push(epoch),
    ...options,
  });
  return { clock, pod, link, later, answers };
}

/** A link to an honest runner that is bound. */
export async function bound(change: Change = {}) {
  const parts = setUp(change);
  await parts.clock.advance(200);
  parts.link.bind({ ...BIND, agent: { ...BIND.agent, command: ['agent'], args: [], env: [] } });
  await parts.clock.advance(10);
  assert.equal(parts.link.view.phase, 'Bound');
  return parts;
}

/** Runs one turn and acknowledges its end. */
export async function runTurn({ clock, pod, link }: Awaited<ReturnType<typeof bound>>, turn: string) {
  link.startTurn({ ...TURN, turn });
  await clock.advance(100);
  pod.finish('x');
  await clock.advance(100);
  link.acknowledge(link.view.delivery!.result.seq);
  await clock.advance(10);
}

/** A pod whose PID 1 has the keys of its runner and prints what a test says, attached by a link that takes it for bound. */
export async function hostile(clock: VirtualClock, options: Partial<LinkOptions> & { uid?: string } = {}) {
  const uid = options.uid ?? 'pod-1';
  const keys = frameKeys(KEY, { session: 'session-1', podUID: uid, boot: BOOT });
  const channel: Channel = { session: 'session-1', incarnation: 1, boot: BOOT, key: keys.up, random: seededRandom() };
  const lines: string[] = [];
  const streams: { onStdout?: AttachOptions['onStdout']; paused: boolean }[] = [];
  const attach = async (_: unknown, { onStdout }: AttachOptions): Promise<PodStream> => {
    const { promise, resolve } = Promise.withResolvers<StreamEnd>();
    const stream = { ...(onStdout && { onStdout }), paused: false };
    streams.push(stream);
    return {
      write: async (data) => {
        lines.push(String(data));
      },
      closeStdin: () => {},
      pause: () => {
        stream.paused = true;
      },
      resume: () => {
        stream.paused = false;
      },
      close: () => resolve({ by: 'local' }),
      closed: promise,
    };
  };
  const link = linkTo({ attach }, clock, options);
  await clock.advance(200);
  const print = (text: string | Buffer) => streams.at(-1)?.onStdout?.(Buffer.from(text as string));
  const ready = { boot: BOOT, protocol: PROTOCOL_VERSION, runnerVersion: '1', podUID: uid, lastSeq: 0, epoch: 5 };
  print(readyText({ ...ready, session: 'session-1', incarnation: 1 }));
  await clock.advance(10);
  /** The texts of a sealed frame, one for each part. */
  const frame = (seq: number, kind: string, message: object, binary?: Buffer) => [
    ...frameText(channel, seq, kind, packMessage(message, binary)),
  ];
  const send = (...frame_: Parameters<typeof frame>) => {
    for (const text of frame(...frame_)) print(text);
  };
  return { link, print, frame, send, lines, attaches: streams };
}

export const stateOf = (binary: Buffer, turn?: string) => ({
  ...(turn === undefined ? {} : { turn }),
  digest: 'a'.repeat(64),
  keyId: 'k',
  bytes: binary.length,
});
