import { once } from 'node:events';
import type { FrameOf } from '../../core/frames/messages.ts';
import type { RunnerHarness } from '../support/runner-harness.ts';

/** The turn's result in the moment in which it is read: a stopwatch must not look every few milliseconds. */
export async function resultOf(runner: RunnerHarness, turn: string): Promise<FrameOf<'result'>> {
  for (let seen = runner.events.length; ; ) {
    await once(runner.child.stdout as NodeJS.ReadableStream, 'data');
    for (; seen < runner.events.length; seen++) {
      const event = runner.events[seen];
      if (event?.type !== 'frame' || event.frame.kind !== 'result') continue;
      const frame = event.frame as FrameOf<'result'>;
      if (frame.message.turn === turn) return frame;
    }
  }
}
