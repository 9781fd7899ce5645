import { badRequest, failure, prototypeKeyRefused } from '../errors.ts';
import { clone, equal, isObject } from '../object.ts';

interface Operation {
  op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  path: string;
  from?: string;
  value?: unknown;
}

/** The API server does not say which operation failed. */
const unprocessable = () => failure(422, 'Invalid', 'the server rejected our request due to an error in our request');

/** Applies a JSON Patch (RFC 6902). Throws 400 for an invalid patch, 422 for one that does not fit the object. */
export function jsonPatch(target: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch) || !patch.every(isObject))
    throw badRequest('error decoding patch: a JSON patch is a list of operations');
  let document = clone(target);
  for (const operation of patch as unknown as Operation[]) document = apply(document, operation);
  return document;
}

function apply(document: unknown, { op, path, from, value }: Operation): unknown {
  if (typeof path !== 'string') throw unprocessable();
  switch (op) {
    case 'add':
      return write(document, pointer(path), clone(value), true);
    case 'replace':
      read(document, pointer(path));
      return write(document, pointer(path), clone(value), false);
    case 'remove':
      return remove(document, pointer(path));
    case 'copy':
      return write(document, pointer(path), clone(read(document, pointer(from ?? ''))), true);
    case 'move': {
      const moved = read(document, pointer(from ?? ''));
      return write(remove(document, pointer(from ?? '')), pointer(path), moved, true);
    }
    case 'test':
      if (!equal(read(document, pointer(path)), value)) throw unprocessable();
      return document;
    default:
      throw unprocessable();
  }
}

function pointer(path: string): string[] {
  if (path === '') return [];
  const steps = path
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  if (steps.includes('__proto__')) throw prototypeKeyRefused();
  return steps;
}

function read(document: unknown, steps: string[]): unknown {
  let here = document;
  for (const step of steps) {
    if (Array.isArray(here) && /^\d+$/.test(step) && Number(step) < here.length) here = here[Number(step)];
    else if (isObject(here) && Object.hasOwn(here, step)) here = here[step];
    else throw unprocessable();
  }
  return here;
}

/** Changes `document` in place, apart from the root. */
function write(document: unknown, steps: string[], value: unknown, insert: boolean): unknown {
  const last = steps.at(-1);
  if (last === undefined) return value;
  const parent = read(document, steps.slice(0, -1));
  if (Array.isArray(parent)) {
    const index = last === '-' ? parent.length : Number(last);
    if (!Number.isInteger(index) || index < 0 || index > parent.length) throw unprocessable();
    parent.splice(index, insert ? 0 : 1, value);
  } else if (isObject(parent)) parent[last] = value;
  else throw unprocessable();
  return document;
}

function remove(document: unknown, steps: string[]): unknown {
  read(document, steps);
  const last = steps.at(-1);
  if (last === undefined) return null;
  const parent = read(document, steps.slice(0, -1));
  if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else if (isObject(parent)) delete parent[last];
  return document;
}
