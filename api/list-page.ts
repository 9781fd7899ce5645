import { ApiError, isExpired } from '../core/kube/errors.ts';
import type { KubeApi, KubeList, KubeObject, ListOptions, Resource } from '../core/kube/types.ts';
import { Problem } from './problems.ts';

export interface PageQuery {
  limit: number;
  continue?: string | undefined;
  labelSelector?: string | undefined;
}

/**
 * Returns a page of objects. Rejects with a Problem that names the parameter which the cluster cannot read, or with an
 * ApiError.
 */
export async function listPage<T extends KubeObject>(
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

/** Body of an answer with a page. `metadata`: of the list that the items are from. */
export function pageBody<T>(items: T[], { continue: next }: KubeList<KubeObject>['metadata']) {
  return { items, ...(next ? { continue: next } : {}) };
}

function mentionsContinue(error: unknown): boolean {
  return error instanceof Error && /continue/i.test(error.message);
}
