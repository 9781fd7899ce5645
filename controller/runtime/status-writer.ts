import { defined } from '../../core/defined.ts';
import type { KubeApi, KubeObject, Resource, Stored } from '../../core/kube/types.ts';
import { type StoredTurn, turns } from '../../core/resources/kinds.ts';

/** Object whose status is written, at this version. */
export type Version = Pick<Stored['metadata'], 'namespace' | 'name' | 'uid' | 'resourceVersion'>;

export interface StatusWriterOptions {
  api: KubeApi;
  /** Handler of each turn whose status was written, called before its writer goes on. Must not throw. */
  onTurn(written: StoredTurn): void;
}

/** The one way in which the leader writes a status. */
export class StatusWriter {
  readonly #options: StatusWriterOptions;

  constructor(options: StatusWriterOptions) {
    this.#options = options;
  }

  /**
   * Writes the status of the object at exactly the version of the decision: another writer in between gives 409
   * Conflict. The status endpoint takes nothing but the status, so the rest of the object need not be sent.
   */
  write<T extends KubeObject & { status?: object }>(
    resource: Resource<T>,
    { namespace, name, uid, resourceVersion }: Version,
    status: NonNullable<T['status']>,
    signal: AbortSignal,
    deadlineMs?: number,
  ): Promise<Stored<T>> {
    const object = {
      apiVersion: `${resource.group}/${resource.version}`,
      kind: resource.kind,
      metadata: { ...defined({ namespace }), name, uid, resourceVersion },
      status,
    };
    const writing = this.#options.api.replace(resource, object as unknown as T, {
      subresource: 'status',
      signal,
      ...defined({ deadlineMs }),
    });
    if ((resource as Resource) !== turns) return writing;
    // The writer gets the client's own promise, so that it goes on at the same moment whoever listens.
    writing.then(
      (written) => this.#options.onTurn(written as unknown as StoredTurn),
      () => {},
    );
    return writing;
  }
}
