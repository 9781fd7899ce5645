import { InvalidArgumentError } from 'commander';
import { parseDuration } from '../core/resources/duration.ts';

/** Values of flags, checked as they are read: the message says what is wrong and shows what is right. */

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/** A name of a Session or Turn: a DNS label. */
export function name(text: string): string {
  if (text.length > 63) {
    throw new InvalidArgumentError(`a name has at most 63 characters, this one has ${text.length}.`);
  }
  if (!LABEL.test(text)) {
    throw new InvalidArgumentError(
      'a name is a DNS label: lower-case letters, digits and "-", beginning and ending with a letter or digit, for example my-session.',
    );
  }
  return text;
}

/** A duration of more than 0, as it is written. */
export function duration(text: string): string {
  let ms: number;
  try {
    ms = parseDuration(text);
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`);
  }
  if (text.length > 32) throw new InvalidArgumentError('it is longer than 32 characters.');
  if (ms < 1) throw new InvalidArgumentError('it must be longer than 0.');
  return text;
}

/** Gathers the values of a flag that may be given several times. */
export function several(text: string, before: string[] = []): string[] {
  return [...before, text];
}
