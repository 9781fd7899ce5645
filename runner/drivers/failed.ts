import { turnError } from '../../core/result/conclude.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import type { Completion } from './driver.ts';

/** Converts a TurnFailure to the turn's completion. Rethrows any other error. */
export function failedBy(error: unknown, secrets: Hidden): Completion {
  if (!(error instanceof TurnFailure)) throw error;
  return { outcome: 'Failed', error: turnError(error.code, error.message, secrets), leftRunning: [] };
}
