import { type LevelWithSilent, type Logger, pino } from 'pino';

/** Bytes of lines that wait for a disk that is full; what is beyond is lost. */
const MAX_WAITING = 64 * 1024;

/** The log of a program, on its stdout (1) or stderr (2). A line that cannot be written does not end the program. */
export function programLog(fd: 1 | 2, level: LevelWithSilent): Logger {
  const destination = pino.destination({ fd, sync: true, maxLength: MAX_WAITING });
  destination.on('error', () => {}); // What waits is written with the next line that can be.
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}
