import { isJsonObject as isObject } from '../json.ts';

type Step = { field: string } | { index: number } | { filter: { path: string[]; value: unknown } } | 'all';

const filterPattern = /^\?\(@((?:\.[\w-]+)+)\s*==\s*(?:"([^"]*)"|'([^']*)'|(true|false|-?\d+))\)$/;

/**
 * Compiles the part of Kubernetes' JSONPath that printer columns and selectable fields use: fields, quoted fields,
 * indexes, `[*]` and filters by equality. Throws for anything else.
 */
export function compileJsonPath(path: string): (object: unknown) => unknown[] {
  const steps = parse(path);
  return (object) => steps.reduce((values: unknown[], step) => values.flatMap((value) => take(value, step)), [object]);
}

function parse(path: string): Step[] {
  const steps: Step[] = [];
  let rest = path.startsWith('.') || path.startsWith('[') ? path : `.${path}`;
  while (rest !== '' && rest !== '.') {
    const field = /^\.((?:\\.|[^.[\]\\])+)/.exec(rest);
    if (field) {
      steps.push({ field: (field[1] as string).replaceAll(/\\(.)/g, '$1') });
      rest = rest.slice(field[0].length);
      continue;
    }
    const bracket = /^\[((?:"[^"]*"|'[^']*'|[^\]"'])*)\]/.exec(rest);
    if (!bracket) throw new Error(`unsupported JSONPath ${JSON.stringify(path)} at ${JSON.stringify(rest)}`);
    steps.push(bracketStep((bracket[1] as string).trim(), path));
    rest = rest.slice(bracket[0].length);
  }
  return steps;
}

function bracketStep(text: string, path: string): Step {
  if (text === '*') return 'all';
  if (/^\d+$/.test(text)) return { index: Number(text) };
  const quoted = /^["'](.*)["']$/.exec(text);
  if (quoted) return { field: quoted[1] as string };
  const filter = filterPattern.exec(text);
  if (!filter) throw new Error(`unsupported JSONPath ${JSON.stringify(path)} at [${text}]`);
  const [, at, double, single, literal] = filter;
  const value = double ?? single ?? JSON.parse(literal as string);
  return { filter: { path: (at as string).slice(1).split('.'), value } };
}

function take(value: unknown, step: Step): unknown[] {
  if (step === 'all') {
    if (Array.isArray(value)) return value;
    return isObject(value) ? Object.values(value) : [];
  }
  if ('field' in step) return isObject(value) && Object.hasOwn(value, step.field) ? [value[step.field]] : [];
  if ('index' in step) return Array.isArray(value) && step.index < value.length ? [value[step.index]] : [];
  if (!Array.isArray(value)) return [];
  const { path, value: wanted } = step.filter;
  return value.filter((item) => path.reduce((v: unknown, key) => (isObject(v) ? v[key] : undefined), item) === wanted);
}
