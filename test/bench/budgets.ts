/** What the limits of a pod's output cost a session that brings a state of the largest size. */
import { createHash, randomBytes } from 'node:crypto';
import { Allowances } from '../../controller/link/allowance.ts';
import { HeldBytes } from '../../controller/link/held-bytes.ts';
import { Link } from '../../controller/link/link.ts';
import { frameText, readyText } from '../../core/frames/encode.ts';
import { PROTOCOL_VERSION } from '../../core/frames/messages.ts';
import { frameKeys } from '../../core/frames/seal.ts';
import { packMessage } from '../../core/frames/wire.ts';
import type { AttachOptions, PodStream } from '../../core/kube/types.ts';
import { systemClock, systemRandom } from '../../core/system.ts';
import { linkOptions } from '../support/link-options.ts';
import { compared, type Figure, MIB } from './figures.ts';
import { count } from './settings.ts';

const SAMPLES = count(15, 3);
const BYTES = 64 * MIB;
/** What a read of a connection brings. */
const CHUNK = 64 * 1024;
const KEY = randomBytes(32);
const BOOT = 'ab'.repeat(16);
const TURN = 'turn-1';
const POD = { namespace: 'bench', name: 'pod', uid: 'pod-1' };

/** The text of a turn that brings so much state, in the pieces of a connection. */
function text(): Buffer[] {
  const { up: key } = frameKeys(KEY, { session: 'session-1', podUID: POD.uid, boot: BOOT });
  const channel = { session: 'session-1', incarnation: 1, boot: BOOT, key, random: systemRandom };
  const sealed = randomBytes(BYTES);
  const digest = createHash('sha256').update(sealed).digest('hex');
  const state = packMessage({ turn: TURN, digest, keyId: 'k', bytes: BYTES }, sealed);
  const at = new Date().toISOString();
  const result = packMessage({
    ...{ turn: TURN, attempt: 1, outcome: 'Succeeded', startedAt: at, finishedAt: at },
    ...{ state: { seq: 1, digest }, leftRunning: [] },
  });
  const whole = Buffer.from(
    [...frameText(channel, 1, 'state', state), ...frameText(channel, 2, 'result', result)].join(''),
  );
  return Array.from({ length: Math.ceil(whole.length / CHUNK) }, (_, i) => whole.subarray(i * CHUNK, (i + 1) * CHUNK));
}

/** Limits that are asked and always grant. */
function unlimited(): { allowances: Allowances; held: HeldBytes } {
  const allowances = new Allowances(systemClock);
  allowances.open = () => ({ spend: () => 0, restore: () => {}, close: () => {} }) as never;
  return { allowances, held: new HeldBytes(systemClock, { maxBytes: Number.POSITIVE_INFINITY }) };
}

/** Milliseconds from the first byte of the turn until its result is there with its state. */
async function read(pieces: readonly Buffer[], limits: Partial<ReturnType<typeof unlimited>>): Promise<number> {
  const attached = Promise.withResolvers<NonNullable<AttachOptions['onStdout']>>();
  let paused: PromiseWithResolvers<void> | undefined;
  const stream: PodStream = {
    write: async () => {},
    closeStdin: () => {},
    pause: () => {
      paused ??= Promise.withResolvers();
    },
    resume: () => {
      paused?.resolve();
      paused = undefined;
    },
    close: () => {},
    closed: new Promise(() => {}),
  };
  const attach = async (_: unknown, { onStdout }: AttachOptions) => {
    if (onStdout) attached.resolve(onStdout);
    return stream;
  };
  const leader = { pod: POD, key: KEY, clock: systemClock, random: systemRandom };
  const link = new Link({ ...linkOptions({ attach }, leader), ...limits });
  // Timers of the link do not keep the process.
  const alive = setInterval(() => {}, 1_000);
  try {
    link.open({ scheduled: true, running: true });
    const print = await attached.promise;
    const ready = { boot: BOOT, protocol: PROTOCOL_VERSION, runnerVersion: '1', podUID: POD.uid, lastSeq: 0, epoch: 5 };
    print(Buffer.from(readyText({ ...ready, session: 'session-1', incarnation: 1 })));
    const began = performance.now();
    for (const piece of pieces) {
      print(piece);
      await paused?.promise;
    }
    const ms = performance.now() - began;
    const { state } = link.view.delivery ?? {};
    if (state?.binary.length !== BYTES) throw new Error('the result did not come with its state');
    return ms;
  } finally {
    clearInterval(alive);
    link.close();
  }
}

export async function budgets(): Promise<Figure[]> {
  const pieces = text();
  const values: number[] = [];
  const beside: number[] = [];
  await read(pieces, {});
  for (let i = 0; i < SAMPLES; i++) {
    values.push(await read(pieces, {}));
    beside.push(await read(pieces, unlimited()));
  }
  const what = 'frames of a turn with 64 MiB of state, read by the controller';
  return [compared(what, values, { what: 'the same without limits of a pod’s output', values: beside })];
}
