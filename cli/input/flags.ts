import { InvalidArgumentError } from 'commander';
import { parseDuration } from '../../core/resources/duration.ts';
import { MAX_ATTEMPTS } from '../../core/resources/limits.ts';
import { parseQuantity } from '../../core/resources/quantity.ts';

/** Parsers of flag values. Their error message names the problem and shows a correct value. */

/** The kind before a name, as in turn.berth.dev/notes-1. */
const KIND = /^(session|turn)(\.berth\.dev)?\//;
const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/** Name of a Session or Turn: a DNS label. */
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

/** Returns the name without the kind before it, and that kind: `session`, `turn` or undefined. */
export function withoutKind(text: string): { kind: string | undefined; name: string } {
  return { kind: KIND.exec(text)?.[1], name: text.replace(KIND, '') };
}

/** Object of Berth as a word names it. */
export interface NamedObject {
  kind: 'session' | 'turn' | 'environment';
  name: string;
}

/** Object as `-o name` and kubectl write it: `turn/notes-1`, `turn.berth.dev/notes-1`. A name alone is that of a session. */
function object(text: string): NamedObject {
  const [before, ...rest] = text.split('/');
  if (rest.length === 0) return { kind: 'session', name: name(text) };
  const [, kind] = /^(session|turn|environment)s?(?:\.berth\.dev)?$/.exec(before ?? '') ?? [];
  if (!kind) throw new InvalidArgumentError(`"${before}" is no kind of Berth; write session/NAME, or the name alone.`);
  return { kind: kind as NamedObject['kind'], name: name(rest.join('/')) };
}

/** Collects objects. */
export const severalObjects = (text: string, before: NamedObject[] = []): NamedObject[] => [...before, object(text)];

/** Name of a session, also as `-o name` prints it: `session/notes`, `session.berth.dev/notes`. Returned without the kind. */
export function session(text: string): string {
  const { kind, name } = object(text);
  if (kind === 'turn') throw new InvalidArgumentError('that is a turn; give the name of a session.');
  if (kind === 'environment') throw new InvalidArgumentError('that is an Environment; there are commands for it: env.');
  return name;
}

/** Name of a session or a turn, also as `-o name` prints it. */
export function sessionOrTurn(text: string): string {
  name(withoutKind(text).name);
  return text;
}

/** Name of a session or a turn, also as `-o name` prints it, or - for stdin. */
export const sessionTurnOrStdin = (text: string): string => (text === '-' ? text : sessionOrTurn(text));

/** Duration of more than 0; returned as it was written. */
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

/** Duration, or 0 without a unit; returned in milliseconds. */
export function limit(text: string): number {
  return text === '0' || text === '0s' ? 0 : parseDuration(duration(text));
}

/** Maximum number of attempts of a turn. */
export function attempts(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > MAX_ATTEMPTS) {
    throw new InvalidArgumentError(`it must be a whole number from 1 to ${MAX_ATTEMPTS}.`);
  }
  return count;
}

const MAX_PARALLEL = 256;

/** Number of sessions that run at the same time. */
export function parallel(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > MAX_PARALLEL) {
    throw new InvalidArgumentError(`it must be a whole number from 1 to ${MAX_PARALLEL}.`);
  }
  return count;
}

const QUANTITY = /^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/;
const LEAST_MEMORY = 2 ** 20;

/** Amount of CPU as a Kubernetes quantity; returned as it was written. */
export function cpu(text: string): string {
  if (!/^[0-9]+(\.[0-9]+)?m?$/.test(text) || parseQuantity(text) === 0) {
    throw new InvalidArgumentError('it must be a number of cores, for example 2, or 500m for half a core.');
  }
  return text;
}

/** Amount of memory as a Kubernetes quantity; returned as it was written. */
export function memory(text: string): string {
  if (!QUANTITY.test(text) || text.endsWith('m')) {
    throw new InvalidArgumentError('it must be a number of bytes with a unit, for example 512Mi or 2Gi.');
  }
  if (parseQuantity(text) < LEAST_MEMORY) {
    throw new InvalidArgumentError(`that is ${parseQuantity(text)} bytes; add a unit, for example 512Mi.`);
  }
  return text;
}

/** TCP port; 0 is any free one. */
export function port(text: string): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number > 65_535) throw new InvalidArgumentError('it must be a port, from 1 to 65535.');
  return number;
}

/** Collects the paths of a flag that takes several; refuses the `--` that the flag took for a path because none was given. */
export function paths(text: string, before: string[] = []): string[] {
  if (text === '--') throw new InvalidArgumentError('it needs a file or folder before the --.');
  return [...before, text];
}

/** Longest name and value of a label, and longest domain of its key: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels. */
const MAX_LABEL = 63;
const MAX_DOMAIN = 253;
const LABEL_TEXT = /^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$/;
const DOMAIN = /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/;

/** Collects labels, `key=value`. */
export function labels(text: string, before: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf('=');
  const [key, value] = [text.slice(0, at), text.slice(at + 1)];
  const domain = key.includes('/') ? key.slice(0, key.indexOf('/')) : undefined;
  const word = domain === undefined ? key : key.slice(domain.length + 1);
  if (at < 1) throw new InvalidArgumentError('it must be a key and a value, for example team=blue.');
  const isText = (part: string) => part.length <= MAX_LABEL && LABEL_TEXT.test(part);
  if (!isText(word) || (domain !== undefined && (domain.length > MAX_DOMAIN || !DOMAIN.test(domain)))) {
    throw new InvalidArgumentError(
      `"${key}" is no key of a label: at most ${MAX_LABEL} letters, digits, "-", "_" and ".", for example team or example.com/team.`,
    );
  }
  if (domain === 'berth.dev' || domain?.endsWith('.berth.dev')) {
    throw new InvalidArgumentError(`labels of berth.dev are Berth’s own; choose another key than ${key}.`);
  }
  if (value !== '' && !isText(value)) {
    throw new InvalidArgumentError(
      `"${value}" is no value of a label: at most ${MAX_LABEL} letters, digits, "-", "_" and ".", beginning and ending with a letter or digit.`,
    );
  }
  if (Object.hasOwn(before, key)) throw new InvalidArgumentError(`${key} is given twice.`);
  return { ...before, [key]: value };
}

/** Collects the values of a flag that may be given several times. */
export function several(text: string, before: string[] = []): string[] {
  return [...before, text];
}
