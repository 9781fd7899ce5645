import { readyText } from '../../../core/frames/encode.ts';
import type { Bind, Ready } from '../../../core/frames/messages.ts';
import { CLOSE, END, frameHeader, START } from '../../../core/frames/wire.ts';
import type { Dice } from '../random.ts';

/** Facts about a runner that its `ready` tells. */
export type TrueReady = Pick<Ready, 'boot' | 'protocol' | 'runnerVersion' | 'podUID' | 'lastSeq'>;

/**
 * Draws text that a hostile process of a pod prints on its stdout without any key of Berth: lines that are no frames, parts of frames,
 * frames that nobody has sealed, and a `ready` with an epoch and a proof of its own.
 */
export function hostileText(dice: Dice, ready: TrueReady, bind: Bind | undefined): string {
  const { boot } = ready;
  const session = bind?.session.uid ?? '';
  const incarnation = bind?.incarnation ?? 0;
  const header = (kind: string, seq: number, part = 1, parts = 1) =>
    `${START}${frameHeader({ session, incarnation, boot, seq, kind, part, parts })}${CLOSE}\n`;
  const body = `${dice.bytes(dice.int(1, 90)).toString('base64')}\n`;
  const seq = dice.int(1, 40);
  const epoch = dice.pick([1, 2_000_000_000, 2 ** 31 - 2, 2 ** 31 - 1, 2 ** 50]);
  const proof = dice.bytes(32).toString('base64');
  const known = bind ? { session, incarnation } : {};
  return dice.pick([
    () => '\n'.repeat(dice.int(1, 50)),
    () => `${START}${CLOSE}\n`.repeat(dice.int(1, 10)),
    () => header(dice.pick(['result', 'state', 'pong']), seq),
    () => `${header('result', seq)}${body}`,
    () => `${header('state', seq, 1, 100)}${body}${END}${seq}/1${CLOSE}\n`,
    () => `${header('result', seq)}${body}${END}${seq}/1${CLOSE}\n`,
    () => readyText({ ...ready, ...known, epoch, ...(dice.chance(0.5) && { proof }) }),
  ])();
}
