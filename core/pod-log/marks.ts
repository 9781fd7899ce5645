/** Beginnings of events and of frames, which the runner alone may write into the readable text of its pod. */
import { END, START } from '../frames/wire.ts';

/** Prefix of the line of an event; a JSON object follows. */
export const EVENT_PREFIX = '[berth event] ';

const MARKS = [`${EVENT_PREFIX}{`, `${START}{`, END];
/** Each mark without its last character, where that follows. */
const ALL = new RegExp(
  MARKS.map((mark) => `${literal(mark.slice(0, -1))}(?=${literal(mark.slice(-1))})`).join('|'),
  'g',
);
const LONGEST = Math.max(...MARKS.map(({ length }) => length));

/**
 * Breaks the marks in text that is not the runner's, by a backslash before their last character: `[berth event] \{`. They are
 * broken wherever they stand, because the container runtime cuts long lines, and a frame can come between two pieces.
 * Nothing is held back.
 */
export class BrokenMarks {
  /** End of the text so far that can be the beginning of a mark. */
  #open = '';

  push(text: string): string {
    const whole = (this.#open + text).replace(ALL, '$&\\');
    const written = whole.slice(this.#open.length);
    this.#open = openEnd(whole);
    return written;
  }
}

function openEnd(text: string): string {
  for (let length = Math.min(LONGEST - 1, text.length); length > 0; length--) {
    const end = text.slice(-length);
    if (MARKS.some((mark) => mark.length > length && mark.startsWith(end))) return end;
  }
  return '';
}

function literal(text: string): string {
  return text.replace(/[[\](){}.*+?^$|\\]/g, '\\$&');
}
