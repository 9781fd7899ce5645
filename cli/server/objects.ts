import { eventsIn, openStream } from '../../clients/typescript/src/follow.ts';
import { listed } from '../../clients/typescript/src/objects.ts';
import { anySignal } from '../../core/abort.ts';
import { ApiError, ifThere } from '../../core/kube/errors.ts';
import { apiVersionOf } from '../../core/kube/paths.ts';
import type {
  CallOptions,
  KubeApi,
  KubeList,
  KubeObject,
  ListOptions,
  ObjectRef,
  Resource,
  Stored,
  WatchEvent,
  WatchOptions,
} from '../../core/kube/types.ts';
import { type StoredTurn, sessions, turns } from '../../core/resources/kinds.ts';
import type { Table } from '../cluster/listed.ts';
import { refused, unreachable } from '../errors.ts';
import type { ServerClient } from './client.ts';

/** Largest page that the HTTP API gives. */
const PAGE = 100;

/** Reads sessions and turns through the HTTP API as from the Kubernetes API. Other kinds are Forbidden. */
export class ServerObjects implements Pick<KubeApi, 'get' | 'list' | 'watch'> {
  readonly #client: ServerClient;
  /** Sessions of turns that have been seen, by the namespace and the name of the turn. */
  readonly #sessions = new Map<string, string>();

  constructor(client: ServerClient) {
    this.#client = client;
  }

  async get<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: CallOptions = {},
  ): Promise<Stored<T>> {
    const path = await this.#pathOf(resource, ref, options);
    const shown = await this.#client.json('GET', path, options);
    return this.object(resource, shown);
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<KubeList<T>> {
    const { namespace, fieldSelector = '', labelSelector, limit, ...call } = options;
    if (namespace === undefined) {
      throw refused('all namespaces at once cannot be listed through the HTTP API; name one with --namespace');
    }
    const fields = new Map(fieldSelector.split(',').map((each) => each.split('=') as [string, string]));
    const name = fields.get('metadata.name');
    if (name !== undefined) {
      const found = await ifThere(this.get(resource, { namespace, name }, call));
      return { metadata: { resourceVersion: found?.metadata.resourceVersion ?? '0' }, items: found ? [found] : [] };
    }
    const session = fields.get('spec.session');
    const path =
      session === undefined
        ? collection(resource, namespace)
        : `${collection(sessions, namespace)}/${encodeURIComponent(session)}/turns`;
    const query = { labelSelector, parent: fields.get('spec.parent.name') };
    const items = await ifThere(this.#pages(resource, path, query, limit, call));
    // A session that does not exist has no turns.
    if (!items && session === undefined) throw notServed(resource);
    return { metadata: { resourceVersion: '0' }, items: items ?? [] };
  }

  /** Watches one object: each event of the namespace that concerns it is followed by a read of the object. */
  async *watch<T extends KubeObject>(
    resource: Resource<T>,
    { namespace = '', fieldSelector = '', resourceVersion, timeoutSeconds, signal }: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>> {
    const name = /^metadata\.name=([^,]+)$/.exec(fieldSelector)?.[1];
    if (name === undefined) throw new TypeError('the HTTP API has watches of single objects only');
    const over = timeoutSeconds === undefined ? undefined : AbortSignal.timeout(timeoutSeconds * 1000);
    const path = `/v1/namespaces/${encodeURIComponent(namespace)}/events`;
    // The stream begins with the changes since the read, also with the end of a turn.
    const after = `${resourceVersion}.${resourceVersion}`;
    let version = resourceVersion;
    const read = async (): Promise<WatchEvent<T> | undefined> => {
      const object = await ifThere(this.get(resource, { namespace, name }, { signal }));
      if (!object)
        return version === '0' ? undefined : { type: 'DELETED', object: { metadata: { name } } as Stored<T> };
      if (object.metadata.resourceVersion === version) return undefined;
      version = object.metadata.resourceVersion;
      return { type: 'MODIFIED', object };
    };
    try {
      const both = over ? anySignal(signal, over) : signal;
      const stream = await this.#client.call((caller) =>
        openStream(caller, path, { after, signal: both, retry: false }),
      );
      try {
        // A deletion before the stream began is not in it.
        const first = await read();
        if (first) yield first;
        for await (const { data } of this.#client.each((caller) => eventsIn(caller, path, stream))) {
          const concerned = 'turn' in data ? data.turn : undefined;
          const isOurs =
            resource.plural === turns.plural ? concerned === name : concerned === undefined && data.session === name;
          const state = isOurs ? await read() : undefined;
          if (state) yield state;
        }
      } finally {
        await stream.discard();
      }
    } catch (error) {
      if (!over?.aborted || signal.aborted) throw error;
    }
  }

  /** Path of a turn, whose session has to be found where it is not known. */
  async turnPath({ namespace, name }: { namespace: string; name: string }, options: CallOptions): Promise<string> {
    const key = `${namespace}/${name}`;
    let session = this.#sessions.get(key);
    if (session === undefined) {
      const query = { name, limit: 1 };
      const path = collection(turns, namespace);
      for await (const { spec } of this.#client.each((caller) =>
        listed<StoredTurn>(caller, path, { ...options, query }),
      )) {
        session = spec.session;
        break;
      }
      if (session === undefined) throw notFound(turns, name);
      this.#sessions.set(key, session);
    }
    return `${collection(sessions, namespace)}/${encodeURIComponent(session)}/turns/${encodeURIComponent(name)}`;
  }

  /** Notes the session of a turn that may not exist yet. */
  expectTurn({ namespace, name }: { namespace: string; name: string }, session: string): void {
    this.#sessions.set(`${namespace}/${name}`, session);
  }

  /** Returns an object of the HTTP API as one of the Kubernetes API. */
  object<T extends KubeObject>(resource: Resource<T>, shown: unknown): Stored<T> {
    const object = shown as Stored<T> | undefined;
    if (typeof object?.metadata?.name !== 'string') {
      throw unreachable(`the server answered with something else than ${resource.kind}; is it Berth's HTTP API?`);
    }
    if (resource.plural === turns.plural) {
      const { metadata, spec } = object as unknown as StoredTurn;
      this.expectTurn(metadata, spec.session);
    }
    return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
  }

  async #pathOf(resource: Resource, { namespace = '', name }: ObjectRef, options: CallOptions): Promise<string> {
    if (resource.plural === turns.plural) return this.turnPath({ namespace, name }, options);
    return `${collection(resource, namespace)}/${encodeURIComponent(name)}`;
  }

  async #pages<T extends KubeObject>(
    resource: Resource<T>,
    path: string,
    query: Record<string, string | undefined>,
    limit: number | undefined,
    call: CallOptions,
  ): Promise<Stored<T>[]> {
    const all: Stored<T>[] = [];
    const pages = { ...call, query: { ...query, limit: Math.min(PAGE, limit ?? PAGE) } };
    for await (const item of this.#client.each((caller) => listed<Stored<T>>(caller, path, pages))) {
      all.push(this.object(resource, item));
      if (all.length === limit) break;
    }
    return all;
  }
}

function collection({ plural, ...rest }: Resource, namespace: string): string {
  if (plural !== sessions.plural && plural !== turns.plural) throw notServed({ plural, ...rest });
  return `/v1/namespaces/${encodeURIComponent(namespace)}/${plural}`;
}

const notServed = ({ plural }: Resource) =>
  new ApiError({ code: 403, reason: 'Forbidden', message: `the HTTP API does not tell of ${plural}` });

const notFound = ({ kind }: Resource, name: string) =>
  new ApiError({ code: 404, reason: 'NotFound', message: `${kind} "${name}" not found`, details: { name } });

/** Returns the table of objects that the API server would make of them. */
export async function tableOf(resource: Resource, list: KubeList<KubeObject>, now: number): Promise<Table> {
  // The definitions load the schemas, which no other command reads.
  const { kinds } = await import('../../core/resources/crd.ts');
  const { columns } = await import('../../core/table/columns.ts');
  const kind = kinds.find(({ plural }) => plural === resource.plural);
  if (!kind) throw new TypeError(`there is no table of ${resource.plural}`);
  const shown = columns({ additionalPrinterColumns: kind.columns });
  return {
    metadata: { resourceVersion: list.metadata.resourceVersion },
    columnDefinitions: shown.map(({ name, priority = 0 }) => ({ name, priority })),
    rows: list.items.map((object) => ({ cells: shown.map(({ cell }) => cell(object as never, now)), object })),
  };
}
