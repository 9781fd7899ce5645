import { ApiError, isExpired } from '../../core/kube/errors.ts';
import type { KubeApi, KubeList, KubeObject, ListOptions, Resource } from '../../core/kube/types.ts';
import { jsonBytes, MiB } from '../../core/resources/limits.ts';
import { Problem } from '../problems/problems.ts';
import type { Call } from '../route.ts';

interface Options extends Pick<ListOptions, 'namespace' | 'signal'>, Pick<Call, 'memory'> {
  /** Field selectors, which an object has to meet all. */
  fields?: readonly string[];
}

export interface PageQuery {
  limit: number;
  continue?: string | undefined;
  labelSelector?: string | undefined;
}

/** Objects of the first request for a page: their size is not known before. */
const FIRST = 10;
/** Bytes that each further request for a page should bring. */
const STEP_BYTES = MiB;
/** Bytes of JSON after which a page ends, however many objects it may have. */
const PAGE_BYTES = 4 * MiB;
/** Copies of an object in memory: as the cluster sent it, and as it is shown. */
const COPIES = 2;

/**
 * Returns a page of objects, which is shorter than its limit where the objects are large or the caller's memory is used up: it
 * ends with a token as every page does. Rejects with a Problem that names the parameter which the cluster cannot read, or with an
 * ApiError.
 */
export async function listPage<T extends KubeObject>(
  api: Pick<KubeApi, 'list'>,
  resource: Resource<T>,
  query: PageQuery,
  { memory, fields = [], ...of }: Options,
): Promise<KubeList<T>> {
  const options = { ...of, ...(fields.length > 0 && { fieldSelector: fields.join(',') }) };
  memory.hold(STEP_BYTES);
  const page = await part(api, resource, { ...query, limit: Math.min(FIRST, query.limit) }, options);
  const { items } = page;
  let held = STEP_BYTES;
  let bytes = jsonBytes(items);
  for (;;) {
    const { continue: next } = page.metadata;
    const left = query.limit - items.length;
    if (!next || left <= 0 || bytes >= PAGE_BYTES) break;
    const more = COPIES * bytes + STEP_BYTES - held;
    if (more > 0 && !memory.tryHold(more)) break;
    held += Math.max(0, more);
    const limit = Math.min(left, Math.max(1, Math.floor((STEP_BYTES * items.length) / Math.max(1, bytes))));
    const further = await part(api, resource, { ...query, limit, continue: next }, options);
    items.push(...further.items);
    bytes += jsonBytes(further.items);
    page.metadata = further.metadata;
  }
  return page;
}

async function part<T extends KubeObject>(
  api: Pick<KubeApi, 'list'>,
  resource: Resource<T>,
  query: PageQuery,
  options: Pick<ListOptions, 'namespace' | 'fieldSelector' | 'signal'>,
): Promise<KubeList<T>> {
  const { limit, continue: from, labelSelector } = query;
  const given = { ...(from ? { continue: from } : {}), ...(labelSelector ? { labelSelector } : {}) };
  try {
    return await api.list(resource, { ...options, limit, ...given });
  } catch (error) {
    if (from && isExpired(error)) {
      const message = 'the list has changed too much since the page before; begin again without it';
      throw new Problem('ContinueExpired', `continue: ${message}.`, { fields: [{ field: 'continue', message }] });
    }
    const field = labelSelector && !(from && mentionsContinue(error)) ? 'labelSelector' : from && 'continue';
    if (!(error instanceof ApiError) || error.code !== 400 || !field) throw error;
    const advice =
      field === 'continue' ? 'give what the page before returned' : 'write it as for kubectl: team=blue,!old';
    const message = `the cluster cannot read it (${error.message}); ${advice}`;
    throw new Problem('InvalidParameter', `${field}: ${message}.`, { fields: [{ field, message }] });
  }
}

/**
 * Returns field selectors of the objects that are in one of the wanted phases; none where all are wanted. A field selector has no
 * "or", so several phases are what the others leave. An object without a status counts as Queued.
 */
export function inPhases<P extends string>(wanted: readonly P[] | undefined, all: readonly P[]): string[] {
  if (wanted === undefined) return [];
  const [only] = wanted;
  if (wanted.length === 1 && only !== 'Queued') return [`status.phase=${only}`];
  const others: string[] = all.filter((phase) => !wanted.includes(phase));
  return [...others, ...(wanted.some((phase) => phase === 'Queued') ? [] : [''])].map(
    (phase) => `status.phase!=${phase}`,
  );
}

/** Body of an answer with a page. `metadata`: of the list that the items are from. */
export function pageBody<T>(items: T[], { continue: next }: KubeList<KubeObject>['metadata']) {
  return { items, ...(next ? { continue: next } : {}) };
}

function mentionsContinue(error: unknown): boolean {
  return error instanceof Error && /continue/i.test(error.message);
}
