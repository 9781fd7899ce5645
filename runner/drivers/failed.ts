import { turnError } from '../../core/result/conclude.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import type { Completion } from './driver.ts';

/** The completion of a turn that ended by a TurnFailure. Anything else that was thrown is thrown on. */
export function failedBy(error: unknown, secrets: Hidden): Completion {
  if (!(error instanceof TurnFailure)) throw error;
  return { outcome: 'Failed', error: turnError(error.code, error.message, secrets), leftRunning: [] };
}
