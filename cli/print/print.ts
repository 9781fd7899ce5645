import type { ScalarTag } from 'yaml';
import { isRawNumber, type RawNumber, rawNumber } from '../../core/json.ts';
import type { KubeObject } from '../../core/kube/types.ts';

/** Formats an object as kubectl prints it. */
export async function formatObject(object: object, format: 'json' | 'yaml'): Promise<string> {
  const { apiVersion, kind, metadata, spec, ...rest } = object as Partial<KubeObject> & { spec?: unknown };
  const ordered = { apiVersion, kind, metadata, spec, ...rest };
  if (format === 'json') return `${JSON.stringify(ordered, null, 2)}\n`;
  const { stringify } = await import('yaml');
  // kubectl reads YAML 1.1, in which Off is false.
  const compat = 'yaml-1.1';
  return stringify(ordered, { keepUndefined: false, compat, customTags: (tags) => [exactNumber, ...tags] });
}

/** Number tag of YAML that writes numbers as JSON does. */
const exactNumber: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  identify: isRawNumber,
  resolve: rawNumber,
  stringify: ({ value }) => (value as RawNumber).rawJSON,
};

/** Returns `session.berth.dev/notes`: the form of a name that kubectl accepts. */
export function nameOf(object: KubeObject): string {
  const { apiVersion = 'berth.dev/', kind = '' } = object;
  const group = apiVersion.includes('/') ? `.${apiVersion.split('/')[0]}` : '';
  return `${kind.toLowerCase()}${group}/${object.metadata.name}`;
}

/** Returns the line that says what became of an object, which `nameOf` has named; with `-o name` the name alone. */
export const doneText = (named: string, done: string, output: 'name' | undefined): string =>
  output === 'name' ? `${named}\n` : `${named} ${done}\n`;

/** Returns `1 file` or `2 files`. */
export const filesText = (count: number): string => (count === 1 ? '1 file' : `${count} files`);
