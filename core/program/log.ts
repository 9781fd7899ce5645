import { type LevelWithSilent, type Logger, pino } from 'pino';

/** Limit of the lines that wait for a full disk, bytes; lines beyond it are lost. */
const MAX_WAITING = 64 * 1024;

/**
 * Returns the log of a program, on its stdout (1) or stderr (2). A line that cannot be written does not end the
 * program.
 */
export function programLog(fd: 1 | 2, level: LevelWithSilent): Logger {
  const destination = pino.destination({ fd, sync: true, maxLength: MAX_WAITING });
  destination.on('error', () => {}); // The next line that can be written takes the waiting lines with it.
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}
