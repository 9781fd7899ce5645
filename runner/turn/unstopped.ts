import { clip } from '../../core/resources/limits.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import { redact } from '../../core/text/redact.ts';
import type { Unstopped } from '../process/contained.ts';

/** Limit of each command line, bytes. */
const COMMAND_BYTES = 200;

/** Returns a redacted line about processes that could not be stopped while the session's files were read; empty where there are none. */
export function unstoppedLine({ named, count }: Unstopped, { logs }: Hidden): string {
  if (count === 0) return '';
  const list = named.map(({ pid, command }) => `${pid} ${clip(redact(command, logs), COMMAND_BYTES)}`).join(', ');
  const rest = count > named.length ? ` and ${count - named.length} more` : '';
  return `[berth: ${count} ${count === 1 ? 'process' : 'processes'} could not be stopped while the files were read, and may have changed them meanwhile: ${list}${rest}]\n`;
}
