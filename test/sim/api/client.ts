import { OF_EVERY_LIFE } from '../../../controller/status/events.ts';
import type { Event } from '../../../core/kube/builtin.ts';
import { ApiError, TransportError } from '../../../core/kube/errors.ts';
import { events } from '../../../core/kube/resources.ts';
import { mayRetry, retryWaitMs } from '../../../core/kube/retry.ts';
import type { AnswerTime } from '../../../core/kube/server-clock.ts';
import type {
  AttachOptions,
  CallOptions,
  DeleteOptions,
  KubeApi,
  KubeList,
  KubeObject,
  ListOptions,
  ObjectRef,
  PatchType,
  PodStream,
  Resource,
  Stored,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from '../../../core/kube/types.ts';
import { delay } from '../../../core/runtime.ts';
import { listObjects, selectorOf } from '../../../local/apiserver/registry/listing.ts';
import type { Kubelets } from '../cluster/kubelets.ts';
import type { ControllerCall, Observer } from '../observer.ts';
import type { Dice } from '../random.ts';
import type { Process, Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';
import { type Call, type FaultRates, fateOf } from './faults.ts';
import { Known } from './known.ts';
import type { SimServer } from './server.ts';
import { watchFaulty } from './watch.ts';

export interface SimApiOptions {
  /** The process that makes the calls. */
  process: Process;
  scheduler: Scheduler;
  server: SimServer;
  kubelets: Kubelets;
  dice: Dice;
  rates: () => FaultRates;
  trace: Trace;
  /** Called before a call is sent and after it was carried out; true: the process has been killed right there. */
  crashes: (when: 'before' | 'after', call: Call) => boolean;
  observer: Pick<Observer, 'sent' | 'called' | 'answered'>;
  /** Called for each answer with the time at which the server wrote it. */
  onAnswer: (time: AnswerTime) => void;
}

const DEFAULT_DEADLINE_MS = 15_000;
/** Maximum lag of a list from the API server's watch cache, in versions. */
const CACHE_LAG = 20;

/**
 * The API as one process sees it. Calls take time, are refused, and are lost with their effect or without it. Retries
 * and errors are those of the real client.
 */
export class SimApi implements KubeApi {
  readonly #options: SimApiOptions;
  readonly #known = new Known();

  constructor(options: SimApiOptions) {
    this.#options = options;
  }

  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options: CallOptions = {}): Promise<Stored<T>> {
    return this.#call('get', resource, ref, options, (api) => api.get(resource, ref));
  }

  list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<KubeList<T>> {
    return this.#call('list', resource, namespaceOf(options), options, async (api) => {
      const list =
        options.resourceVersion === '0' ? this.#cached(resource, options) : await api.list(resource, options);
      if (!options.metadataOnly) return list;
      return { ...list, items: list.items.map(({ metadata }) => ({ metadata }) as Stored<T>) };
    });
  }

  create<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions = {}): Promise<Stored<T>> {
    if (isOfEveryLife(resource, object)) {
      this.#options.trace.object(object);
      return Promise.resolve(object as unknown as Stored<T>);
    }
    return this.#call('create', resource, object.metadata, options, (api) =>
      api.create(resource, typed(resource, object)),
    );
  }

  replace<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions = {}): Promise<Stored<T>> {
    const { subresource } = options;
    const replace = (api: SimServer['admin']) =>
      api.replace(resource, typed(resource, object), subresource ? { subresource } : {});
    return this.#call('replace', resource, object.metadata, options, replace, object);
  }

  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: object,
    options: WriteOptions & { type?: PatchType } = {},
  ): Promise<Stored<T>> {
    const { subresource, type } = options;
    return this.#call('patch', resource, ref, options, (api) =>
      api.patch(resource, ref, patch, { ...(subresource ? { subresource } : {}), ...(type ? { type } : {}) }),
    );
  }

  delete<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
    const { signal: _s, deadlineMs: _d, ...rest } = options;
    return this.#call('delete', resource, ref, options, (api) => api.delete(resource, ref, rest));
  }

  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>> {
    const { process, scheduler, server, dice, rates } = this.#options;
    return watchFaulty({ process, scheduler, server, dice, rates, known: this.#known }, resource, options);
  }

  async *podLog(ref: ObjectRef, options: Parameters<KubeApi['podLog']>[1]): AsyncIterable<Buffer> {
    const { process, kubelets, dice, rates } = this.#options;
    await process.sleep(dice.skewed(1, 30));
    options.signal?.throwIfAborted();
    if (dice.chance(rates().log)) {
      kubelets.logFailed(ref);
      throw new ApiError({ code: 500, reason: 'InternalError', message: 'simulated' });
    }
    for (const piece of kubelets.log(ref)) {
      await process.sleep(0.1);
      options.signal?.throwIfAborted();
      yield piece;
      if (!dice.chance(rates().log / 4)) continue;
      kubelets.logFailed(ref);
      throw new TransportError('the log broke off (simulated)');
    }
  }

  async attach(ref: ObjectRef, options: AttachOptions): Promise<PodStream> {
    const { process, kubelets, dice, rates } = this.#options;
    await process.sleep(dice.skewed(1, 20));
    options.signal?.throwIfAborted();
    if (dice.chance(rates().attach)) {
      await process.sleep(dice.skewed(1, 5000));
      options.signal?.throwIfAborted();
      throw new TransportError('attach failed (simulated)');
    }
    return kubelets.attach(ref, options, process);
  }

  async exec(): Promise<PodStream> {
    throw new ApiError({ code: 501, reason: 'NotImplemented', message: 'nothing of the controller uses exec' });
  }

  /** A list from the API server's watch cache: consistent, but of the past. */
  #cached<T extends KubeObject>(resource: Resource<T>, options: ListOptions): KubeList<T> {
    const { server, dice } = this.#options;
    const { registry, store } = server;
    const type = server.type(resource);
    const version = Math.max(2, store.version - dice.int(0, CACHE_LAG));
    const list = listObjects(registry, type, options.namespace, {
      selector: selectorOf(type, options.labelSelector ?? null, options.fieldSelector ?? null),
      resourceVersion: String(version),
      resourceVersionMatch: 'Exact',
    });
    return list as unknown as KubeList<T>;
  }

  async #call<R>(
    verb: Call['verb'],
    resource: Resource,
    { namespace, name = '' }: { namespace?: string; name?: string },
    options: CallOptions,
    execute: (api: SimServer['admin']) => Promise<R>,
    object?: KubeObject,
  ): Promise<R> {
    const { process, observer } = this.#options;
    const now = process.monotonic();
    const sentAt = (agoMs = 0) => process.ownTimeBefore(now, agoMs);
    const call: ControllerCall = {
      process: process.name,
      verb,
      resource: resource.plural,
      namespace,
      name,
      object,
      ...preconditions(options),
      sentAt,
      knew: (plural, agoMs) => this.#known.version(plural, sentAt(agoMs)),
    };
    observer.sent(call);
    try {
      const value = await this.#tries(call, options, execute);
      observer.answered(call, undefined);
      return value;
    } catch (error) {
      observer.answered(call, error as Error);
      throw error;
    }
  }

  /**
   * Retries like the real client. One deadline covers all tries, and only a call that cannot have had an effect is
   * retried.
   */
  async #tries<R>(
    call: ControllerCall,
    options: CallOptions,
    execute: (api: SimServer['admin']) => Promise<R>,
  ): Promise<R> {
    const { process, dice } = this.#options;
    const end = process.monotonic() + (options.deadlineMs ?? DEFAULT_DEADLINE_MS);
    for (let failures = 1; ; failures++) {
      try {
        options.signal?.throwIfAborted();
        return await this.#once(call, options, end, execute);
      } catch (error) {
        const readOnly = call.verb === 'get' || call.verb === 'list';
        if (options.retry === false || !mayRetry(error, readOnly)) throw error;
        const waitMs = retryWaitMs(error, failures, dice);
        if (process.monotonic() + waitMs >= end) throw error;
        await delay(process, waitMs, options.signal);
      }
    }
  }

  #once<R>(
    call: ControllerCall,
    options: CallOptions,
    end: number,
    execute: (api: SimServer['admin']) => Promise<R>,
  ): Promise<R> {
    const { process, scheduler, server, dice, rates, trace, crashes, onAnswer, observer } = this.#options;
    const what = `${call.verb} ${call.resource} ${call.name}`;
    const { promise, resolve, reject } = Promise.withResolvers<R>();
    if (!process.alive || crashes('before', call)) return promise; // the call is never sent
    const fate = fateOf(call, rates(), dice);
    const cancelDeadline = process.after(end - scheduler.now, `deadline of ${what}`, () =>
      reject(new TransportError(`${what}: no answer in time (simulated)`)),
    );
    const onAbort = () => reject(options.signal?.reason);
    options.signal?.addEventListener('abort', onAbort, { once: true });
    const sentAt = scheduler.now;
    const answer = (afterMs: number, text: string, give: () => void) => {
      const date = new Date(server.clock.now()).toUTCString();
      const answeredBy = server.starts;
      process.after(afterMs, `${what}: ${text}`, () => {
        if (server.starts !== answeredBy) {
          reject(new TransportError(`${what}: connection reset (simulated)`));
          return;
        }
        onAnswer({ date, sentAt, receivedAt: process.monotonic() });
        give();
      });
    };
    const lose = (afterMs: number) =>
      process.after(afterMs, `${what}: answer lost`, () =>
        reject(new TransportError(`${what}: connection reset (simulated)`)),
      );

    const { starts } = server;
    if (!fate.neverArrives) {
      const arrive = () => {
        const heldMs = server.heldMs(process.name);
        if (heldMs > 0) {
          scheduler.after(heldMs + fate.before, undefined, `${what} of ${process.name}`, arrive);
          return;
        }
        if (server.starts !== starts || server.isDown) {
          lose(1);
          return;
        }
        const refusal = fate.refusal ?? server.refusal(call.namespace, what);
        if (refusal) {
          answer(fate.after, refusal.message, () => reject(refusal));
          return;
        }
        // The server drops a write after its caller's deadline, which the request carries.
        if (options.deadlineMs !== undefined && scheduler.now >= end) return;
        observer.called(call);
        const done = execute(server.admin);
        if (process.alive) crashes('after', call);
        done.then(
          (value) => {
            trace.line(() => ['apiserver', what, versionOf(value)]);
            if (fate.lostAfter === undefined) answer(fate.after, 'OK', () => resolve(value));
          },
          (error: Error) => {
            trace.line(() => ['apiserver', what, error.message]);
            if (fate.lostAfter === undefined) answer(fate.after, error.message, () => reject(error));
          },
        );
      };
      scheduler.after(fate.before, undefined, `${what} of ${process.name}`, arrive);
    }
    if (fate.lostAfter !== undefined) lose(fate.before + fate.lostAfter);
    return promise.finally(() => {
      cancelDeadline();
      options.signal?.removeEventListener('abort', onAbort);
    });
  }
}

const namespaceOf = ({ namespace }: ListOptions) => (namespace === undefined ? {} : { namespace });

function preconditions(
  options: CallOptions,
): Pick<ControllerCall, 'uid' | 'resourceVersion' | 'fieldSelector' | 'labelSelector' | 'continue' | 'limit'> {
  const { uid, resourceVersion, fieldSelector, labelSelector, limit, ...more } = options as DeleteOptions & ListOptions;
  return { uid, resourceVersion, fieldSelector, labelSelector, continue: more.continue, limit };
}

/** Returns the object with `apiVersion` and `kind`, as the real client sends it. */
function typed<T extends KubeObject>(resource: Resource<T>, object: T): T {
  const { group, version, kind } = resource;
  return { ...object, apiVersion: group ? `${group}/${version}` : version, kind };
}

function versionOf(value: unknown): string {
  const { metadata, items, status } = (value ?? {}) as {
    metadata?: { resourceVersion?: string };
    items?: unknown[];
    status?: { phase?: string };
  };
  if (items) return `${items.length} items at ${metadata?.resourceVersion}`;
  return `→ ${metadata?.resourceVersion ?? 'done'} ${status?.phase ?? ''}`;
}

/**
 * Reports whether this is an event that every session has. Nobody awaits or reads it, so it takes no part in the world: which
 * seed finds which mistake does not depend on it. Events that need attention do.
 */
function isOfEveryLife(resource: Resource, object: KubeObject): boolean {
  return resource.plural === events.plural && OF_EVERY_LIFE.has((object as Event).reason);
}
