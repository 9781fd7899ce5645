import { defined } from '../defined.ts';
import type { KubeApi, KubeList, KubeObject, ListOptions, Resource } from './types.ts';

/**
 * Calls `take` with each page of a list, in order. `limit` of the options is the size of a page. Resolves with the
 * resourceVersion of the first page, from which a watch starts.
 */
export async function eachPage<T extends KubeObject>(
  api: Pick<KubeApi, 'list'>,
  resource: Resource<T>,
  options: ListOptions,
  take: (page: KubeList<T>) => void,
): Promise<string> {
  let version: string | undefined;
  let token: string | undefined;
  do {
    const page = await api.list(resource, { ...options, ...defined({ continue: token }) });
    version ??= page.metadata.resourceVersion;
    take(page);
    token = page.metadata.continue || undefined;
  } while (token !== undefined);
  return version;
}
