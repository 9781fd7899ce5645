import type { Random } from '../../../core/runtime.ts';

/** Name rules of Kubernetes, each with the message of the API server. An empty list means that the name is valid. */

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const subdomain = `${label}(\\.${label})*`;
const qualifiedPart = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const labelValuePattern = `(${qualifiedPart})?`;

const whole = (pattern: string, text: string) => new RegExp(`^(?:${pattern})$`).test(text);
const hint = (text: string, pattern: string, ...examples: string[]) =>
  `${text} (e.g. ${examples.map((example) => `'${example}'`).join(',  or ')}, regex used for validation is '${pattern}')`;
const long = (max: number) => `must be no more than ${max} ${max === 1 ? 'byte' : 'bytes'}`;

const subdomainMessage = hint(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  subdomain,
  'example.com',
);
const labelMessage = hint(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  label,
  'my-name',
  '123-abc',
);
const qualifiedMessage = (prefix = '') =>
  `${prefix}${hint(
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    qualifiedPart,
    'MyName',
    'my.name',
    '123-abc',
  )}`;
const valueMessage = hint(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  labelValuePattern,
  'MyValue',
  'my_value',
  '12345',
);

function checks(text: string, max: number, pattern: string, message: string): string[] {
  return [...(Buffer.byteLength(text) > max ? [long(max)] : []), ...(whole(pattern, text) ? [] : [message])];
}

export const subdomainErrors = (name: string) => checks(name, 253, subdomain, subdomainMessage);
export const labelErrors = (name: string) => checks(name, 63, label, labelMessage);
export const labelValueErrors = (value: string) => checks(value, 63, labelValuePattern, valueMessage);

/** Rule of RBAC objects: anything that can be part of a path. */
export function pathErrors(name: string): string[] {
  if (name === '.' || name === '..') return [`may not be '${name}'`];
  return ['/', '%'].filter((c) => name.includes(c)).map((c) => `may not contain '${c}'`);
}

/** Rule of label and annotation keys: an optional DNS subdomain, a slash, a name. */
export function qualifiedNameErrors(key: string): string[] {
  const parts = key.split('/');
  if (parts.length > 2) {
    return [
      `a qualified name ${qualifiedMessage().replace('name part ', '')} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const name = parts.at(-1) as string;
  const errors: string[] = [];
  if (parts.length === 2) {
    if (parts[0] === '') errors.push('prefix part must be non-empty');
    else errors.push(...subdomainErrors(parts[0] as string).map((message) => `prefix part ${message}`));
  }
  if (name === '') errors.push('name part must be non-empty');
  else if (Buffer.byteLength(name) > 63) errors.push(`name part ${long(63)}`);
  if (!whole(qualifiedPart, name)) errors.push(qualifiedMessage());
  return errors;
}

const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789';

/** Returns a name for `generateName`: cut to fit, with five random characters. */
export function generatedName(base: string, random: Random): string {
  let suffix = '';
  for (let i = 0; i < 5; i++) suffix += suffixAlphabet[Math.floor(random.uniform() * suffixAlphabet.length)];
  return base.slice(0, 58) + suffix;
}
