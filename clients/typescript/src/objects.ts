/** What all kinds of objects have in common: their paths, the options of a create, lists in pages. */
import { NotBerth, ProblemError } from './errors.ts';
import { RELEASE } from './generated/release.ts';
import type { Query } from './http.ts';
import { stringifyExact } from './numbers.ts';
import type { Call, Caller, Json, Limits } from './retry.ts';

export interface CreateOptions extends Limits {
  /** Name of the new object; default: given by the server. */
  name?: string | undefined;
  labels?: { readonly [key: string]: string } | undefined;
  annotations?: { readonly [key: string]: string } | undefined;
  /** Default: a random one. Give your own, and keep it, for a create that has to be safe over a restart of your program. */
  idempotencyKey?: string | undefined;
}

/** Joins segments of a path, each encoded. */
export const pathOf = (...segments: readonly string[]) => `/v1/${segments.map(encodeURIComponent).join('/')}`;

/** Creates an object; a repeat with the same key finds the one that the first made. */
export function created<T>(
  caller: Caller,
  path: string,
  spec: object,
  { name, labels, annotations, idempotencyKey, signal, deadlineMs }: CreateOptions,
  more: Pick<Call, 'query' | 'waitMs' | 'maxBytes'> = {},
): Promise<Json<T>> {
  const metadata = { name, labels, annotations };
  const key = idempotencyKey ?? globalThis.crypto.randomUUID();
  return caller.json({
    method: 'POST',
    path,
    body: stringifyExact({ metadata, spec }),
    key,
    signal,
    deadlineMs,
    ...more,
  });
}

export interface ListOptions extends Limits {
  /** As for kubectl, for example `team=blue`. */
  labelSelector?: string | undefined;
  /** Only objects in this phase, or in one of these. */
  phase?: string | readonly string[] | undefined;
  /** False leaves out of each spec what most programs do not need. Default: true. */
  specs?: boolean | undefined;
}

/** Returns the parameters that select objects of a list. */
export function selection({ labelSelector, phase, specs = true }: Omit<ListOptions, keyof Limits>): Query {
  return {
    labelSelector,
    phase: typeof phase === 'string' ? phase : phase?.join(','),
    specs: specs ? undefined : false,
  };
}

interface Metadata {
  metadata: { name: string; uid: string };
}

/** Returns the object of an answer, which is of this kind as far as the client has to know it. */
export function objectOf<T extends Metadata>(answer: T, kind: string, caller: Caller): T {
  const { name, uid } = (answer as Partial<T> | null)?.metadata ?? {};
  if (typeof name === 'string' && typeof uid === 'string') return answer;
  throw unlike(kind, caller);
}

function unlike(kind: string, { release = 'unknown' }: Caller): NotBerth {
  return new NotBerth(
    `the server answered with something other than a ${kind}; the API is of release ${release}, this client of ${RELEASE}`,
  );
}

interface Page<T> {
  items: T[];
  continue?: string | undefined;
}

/**
 * Yields the objects of a list, page by page. A list that has changed too much to be continued begins anew, without the objects that were
 * yielded before.
 */
export async function* listed<T extends Metadata>(
  caller: Caller,
  path: string,
  { query, signal, deadlineMs }: Limits & { query?: Query },
): AsyncGenerator<T, void, undefined> {
  const seen = new Set<string>();
  for (let token: string | undefined, isLast = false; !isLast; ) {
    let page: Page<T>;
    try {
      const call = { method: 'GET', path, query: { ...query, continue: token }, signal, deadlineMs } as const;
      page = (await caller.json<Page<T>>(call)).value;
    } catch (error) {
      if (token === undefined || !(error instanceof ProblemError) || error.code !== 'ContinueExpired') throw error;
      token = undefined;
      continue;
    }
    if (!Array.isArray(page?.items)) throw unlike('list', caller);
    for (const item of page.items) {
      const { uid } = item.metadata;
      if (seen.has(uid)) continue;
      seen.add(uid);
      yield item;
    }
    token = page.continue;
    isLast = token === undefined;
  }
}
