import type { Clock, Random } from './runtime.ts';

/** Ends of names that Berth makes up. */

/** Digits and letters that form no words, in the order in which Kubernetes sorts names. */
const ALPHABET = '2456789bcdfghjklmnpqrstvwxz';
/** Digits of a time in milliseconds, enough until the year 2211. */
const TIME_DIGITS = 9;
/** Keeps names of one session and one millisecond apart. */
const RANDOM_DIGITS = 4;
const SUFFIX = TIME_DIGITS + RANDOM_DIGITS;

/** Returns a short random suffix for a name. */
export function randomSuffix(random: Random, length: number): string {
  return Array.from(random.bytes(length), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
}

/**
 * Returns a suffix for the name of a turn: the time, then random digits. Names with one prefix sort in the order in which they
 * were made, by the clocks of their makers.
 */
export function turnSuffix({ clock, random }: { clock: Pick<Clock, 'now'>; random: Random }): string {
  let time = '';
  for (let rest = clock.now(); time.length < TIME_DIGITS; rest = Math.floor(rest / ALPHABET.length)) {
    time = `${ALPHABET[rest % ALPHABET.length]}${time}`;
  }
  return time + randomSuffix(random, RANDOM_DIGITS);
}

/** Returns a name for a turn that nobody has named, of at most 63 characters. */
export function turnName(session: string, maker: Parameters<typeof turnSuffix>[0]): string {
  return `${session.slice(0, 62 - SUFFIX)}-${turnSuffix(maker)}`;
}
