import type { ServerResponse } from 'node:http';
import type { Clock } from '../../../core/runtime.ts';
import { statusObject } from '../errors.ts';
import { forbiddenField, invalidObject } from '../fields.ts';
import type { ApiObject } from '../object.ts';
import { listObjects, parseVersion } from '../registry/listing.ts';
import type { Registry } from '../registry/registry.ts';
import { groupVersion, type ResourceType } from '../registry/types.ts';
import { watchObjects } from '../registry/watching.ts';
import type { Selector } from '../store/selectors.ts';
import { isTrue } from './request.ts';
import { asApiError } from './respond.ts';
import { render, type View } from './table.ts';

/** Limit of a watcher's backlog, above which it is cut off, as the API server does; bytes. */
const maxBacklog = 16 * 1024 * 1024;
/** Default timeout of a watch; seconds. */
const defaultTimeout = 1800;

export interface WatchHub {
  registry: Registry;
  clock: Clock;
  bookmarkIntervalMs: number;
  /** All open watches, so that they can be ended from outside. */
  open: Set<Watch>;
  stalled: boolean;
}

/** A watch connection: lines of JSON, each an event. */
export class Watch {
  readonly #res: ServerResponse;
  readonly #hub: WatchHub;
  readonly type: ResourceType;
  readonly #view: View;
  #first = true;
  #ends: (() => void)[] = [];
  /** Events held back while stalled. */
  #held: string[] = [];

  constructor(hub: WatchHub, type: ResourceType, view: View, res: ServerResponse) {
    this.#hub = hub;
    this.type = type;
    this.#view = view;
    this.#res = res;
  }

  start(namespace: string | undefined, selector: Selector, query: URLSearchParams): void {
    const { registry, clock, open } = this.#hub;
    const version = query.get('resourceVersion');
    const initial = initialEvents(query);
    const after = !version || version === '0' || initial ? registry.store.version : parseVersion(version);
    open.add(this);
    this.#res.once('close', () => this.#stop());
    this.#res.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-cache, private' });
    this.#res.flushHeaders();

    if (initial || ((!version || version === '0') && initial !== false)) {
      for (const object of listObjects(registry, this.type, namespace, { selector }).items) this.#send('ADDED', object);
      if (initial) this.#bookmark({ 'k8s.io/initial-events-end': 'true' });
    }
    try {
      this.#ends.push(
        watchObjects(registry.store, this.type, namespace, selector, after, (type, object) => this.#send(type, object)),
      );
    } catch (error) {
      // Errors after the check of the parameters are sent as an event and not as the answer.
      this.#write({ type: 'ERROR', object: statusObject(asApiError(error).status) });
      this.#res.end();
      return;
    }
    const bookmarks = isTrue(query.get('allowWatchBookmarks'));
    if (bookmarks) this.#repeatBookmarks();
    const timeout = Number(query.get('timeoutSeconds') ?? defaultTimeout);
    this.#ends.push(
      clock.setTimer(Math.min(timeout > 0 ? timeout : defaultTimeout, 86_400) * 1000, () => {
        if (bookmarks) this.#bookmark();
        this.end();
      }),
    );
  }

  /** Breaks the connection. */
  drop(): void {
    this.#res.destroy();
  }

  /** Ends the answer in order. Later changes are not written; the connection may stay open. */
  end(): void {
    this.#stop();
    this.#res.end();
  }

  /** Sends the events that were held back. */
  release(): void {
    const held = this.#held;
    this.#held = [];
    for (const line of held) this.#res.write(line);
  }

  #stop(): void {
    this.#hub.open.delete(this);
    for (const end of this.#ends) end();
    this.#ends = [];
  }

  #repeatBookmarks(): void {
    const { clock, bookmarkIntervalMs } = this.#hub;
    const next = () => {
      const cancel = clock.setTimer(bookmarkIntervalMs, () => {
        this.#ends = this.#ends.filter((end) => end !== cancel);
        if (!this.#hub.open.has(this)) return;
        this.#bookmark();
        next();
      });
      this.#ends.push(cancel);
    };
    next();
  }

  #bookmark(annotations?: Record<string, string>): void {
    const object = {
      kind: this.type.kind,
      apiVersion: groupVersion(this.type),
      metadata: {
        resourceVersion: String(this.#hub.registry.store.version),
        creationTimestamp: null,
        ...(annotations ? { annotations } : {}),
      },
    };
    // A bookmark of a table is a table with one empty row around it.
    this.#write({ type: 'BOOKMARK', object: this.#view.as === 'table' ? this.#tableBookmark(object) : object });
  }

  #tableBookmark(object: object): object {
    return {
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      metadata: (object as { metadata: object }).metadata,
      columnDefinitions: null,
      rows: [{ cells: this.type.columns.map(() => null), object }],
    };
  }

  #send(type: string, object: ApiObject): void {
    const view = this.#view.as === 'table' ? { ...this.#view, headers: this.#first } : this.#view;
    this.#first = false;
    try {
      this.#write({ type, object: render(object, this.type, view, this.#hub.clock.now()) });
    } catch {
      // An error of a watcher must not reach the writer of the object: the watcher reconnects and lists.
      this.drop();
    }
  }

  #write(event: object): void {
    const line = `${JSON.stringify(event)}\n`;
    if (this.#hub.stalled) {
      this.#held.push(line);
      return;
    }
    this.#res.write(line);
    if (this.#res.writableLength > maxBacklog) this.#res.destroy();
  }
}

const listOptions = { group: 'meta.k8s.io', kind: 'ListOptions' };

/**
 * Reads `sendInitialEvents`; undefined without it. Throws 422 when it comes without the right
 * `resourceVersionMatch`, or that parameter comes alone.
 */
function initialEvents(query: URLSearchParams): boolean | undefined {
  const asked = query.get('sendInitialEvents');
  const match = query.get('resourceVersionMatch');
  const field = 'resourceVersionMatch';
  if (asked === null) {
    if (!match) return undefined;
    const why = 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided';
    throw invalidObject(listOptions, '', [forbiddenField(field, why)]);
  }
  if (match !== 'NotOlderThan') {
    const why = 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan';
    throw invalidObject(listOptions, '', [forbiddenField(field, why)]);
  }
  return isTrue(asked);
}
