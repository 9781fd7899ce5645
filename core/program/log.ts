import { type LevelWithSilent, type Logger, pino } from 'pino';
import { textLine } from './log-text.ts';

/** Limit of the lines that wait for a full disk, bytes; lines beyond it are lost. */
const MAX_WAITING = 64 * 1024;

/** `json`: an object a line, for collectors. `text`: for people. */
export const LOG_FORMATS = ['json', 'text'] as const;

/**
 * Returns the log of a program, on its stdout (1) or stderr (2). A line that cannot be written does not end the
 * program.
 */
export function programLog(fd: 1 | 2, level: LevelWithSilent, format: (typeof LOG_FORMATS)[number] = 'json'): Logger {
  const destination = pino.destination({ fd, sync: true, maxLength: MAX_WAITING });
  destination.on('error', () => {}); // The next line that can be written takes the waiting lines with it.
  const lines = { write: (json: string) => void destination.write(textLine(json)) };
  // The level is a word: collectors know no numbers of levels.
  const formatters = { level: (label: string) => ({ level: label }) };
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters };
  return pino(options, format === 'text' ? lines : destination);
}
