import { anySignal } from '../../core/abort.ts';
import type { Cli } from '../cli.ts';

/** The end of a wait: Ctrl-C, or the time that a flag allows. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** True once the time is over. */
  readonly isOver: boolean;
}

/** Starts a deadline of `ms` milliseconds. */
export function deadline({ clock, interrupted }: Pick<Cli, 'clock' | 'interrupted'>, ms: number): Deadline {
  const over = new AbortController();
  const cancel = clock.setTimer(ms, () => over.abort(new Error('the deadline has passed')));
  return {
    signal: anySignal(interrupted, over.signal),
    get isOver() {
      return over.signal.aborted;
    },
    [Symbol.dispose]: cancel,
  };
}
