import { clip } from '../../core/resources/limits.ts';
import type { Rules } from '../../core/text/hidden.ts';
import { redact } from '../../core/text/redact.ts';
import type { Survivor } from './contained.ts';

const MAX_COMMAND_BYTES = 250;

/**
 * Returns the survivors for reports. Commands are redacted before they are cut, because half of a secret would not be
 * recognized.
 */
export function redactedSurvivors(survivors: Survivor[], rules: Rules): Survivor[] {
  return survivors.map(({ pid, command }) => ({ pid, command: clip(redact(command, rules), MAX_COMMAND_BYTES) }));
}
