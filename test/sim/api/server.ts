import { ApiError } from '../../../core/kube/errors.ts';
import type { KubeObject, Resource, Stored } from '../../../core/kube/types.ts';
import { customResourceDefinition, kinds } from '../../../core/resources/crd.ts';
import type { Clock } from '../../../core/runtime.ts';
import { silentLogger } from '../../../core/system.ts';
import { Controllers } from '../../../local/apiserver/controllers/controllers.ts';
import { garbageCollector } from '../../../local/apiserver/controllers/garbage.ts';
import { InProcessApi } from '../../../local/apiserver/inprocess.ts';
import type { ApiObject } from '../../../local/apiserver/object.ts';
import { builtinResources } from '../../../local/apiserver/registry/builtin/index.ts';
import { Catalogue } from '../../../local/apiserver/registry/catalogue.ts';
import { crdStorage } from '../../../local/apiserver/registry/crd/types.ts';
import { Registry, type WriteRequest } from '../../../local/apiserver/registry/registry.ts';
import type { ResourceType } from '../../../local/apiserver/registry/types.ts';
import { type Change, VersionedStore } from '../../../local/apiserver/store/versioned.ts';
import type { Dice } from '../random.ts';
import { Process, type Scheduler } from '../scheduler.ts';

/** Changes that a watch can go back; a small number, so that some watches get 410 Gone. */
const HISTORY = 400;

/** Definitions with their compiled schemas and rules, shared by all seeds of a process. */
const catalogue = new Catalogue(builtinResources);
for (const kind of kinds) {
  const definition = customResourceDefinition(kind) as unknown as ApiObject;
  catalogue.apply({ storage: crdStorage, type: 'ADDED', object: definition });
}

export const storageOf = ({ group, plural }: Resource): string => (group ? `${plural}.${group}` : plural);

/** Runs the garbage collector's work a while after the write that caused it. */
class DelayedControllers extends Controllers {
  readonly #later: (run: () => void) => void;
  readonly #work: (() => void)[] = [];

  constructor(clock: Clock, later: (run: () => void) => void) {
    super(silentLogger, clock);
    this.#later = later;
  }

  override soon(work: () => void): void {
    this.#work.push(work);
    if (this.#work.length > 1) return;
    this.#later(() => {
      for (const item of this.#work.splice(0)) item();
    });
  }
}

/** The embedded API server's own registry, without HTTP: every write follows the rules of the real one. */
export class SimServer {
  readonly registry: Registry;
  readonly store: VersionedStore;
  /** Access without faults or limits of permission, for users, kubelets and invariants. */
  readonly admin: InProcessApi;
  readonly clock: Process;
  /** Number of starts of the server's process; a request to an earlier process gets no answer. */
  starts = 1;
  readonly #scheduler: Scheduler;
  readonly #connections = new Set<() => void>();
  readonly #heldUntil = new Map<string, number>();
  /** Namespaces in which the controllers have no rights, and what ends their watches in each. */
  readonly #closed = new Set<string>();
  readonly #watches = new Map<string, Set<() => void>>();
  #upAt = 0;

  constructor(scheduler: Scheduler, dice: Dice) {
    this.#scheduler = scheduler;
    this.clock = new Process('apiserver', scheduler);
    this.store = new VersionedStore({ historyLength: HISTORY });
    this.registry = new Registry({
      store: this.store,
      catalogue,
      clock: this.clock,
      random: dice.stream('uids'),
    });
    this.admin = new InProcessApi(this.registry);
    const pace = dice.stream('garbage');
    garbageCollector(
      this.registry,
      new DelayedControllers(this.clock, (run) =>
        scheduler.after(pace.skewed(5, 3000), undefined, 'garbage collector', run),
      ),
    );
  }

  /**
   * Kills the server's process; it serves again after `downMs`. Accepted writes are kept, because etcd and the embedded
   * journal keep a write before they acknowledge it. Versions therefore go on, and none is used twice. Requests under
   * way, watches and history are lost.
   */
  restart(downMs: number): void {
    this.starts++;
    this.#upAt = this.#scheduler.now + downMs;
    this.store.compact();
    for (const end of [...this.#connections]) end();
  }

  /**
   * Takes the controllers' rights in a namespace, or gives them again. Watches there end, as they do after a while where nobody
   * renews them.
   */
  setRights(namespace: string, has: boolean): void {
    if (has) this.#closed.delete(namespace);
    else this.#closed.add(namespace);
    if (!has) for (const end of [...(this.#watches.get(namespace) ?? [])]) end();
  }

  /** Refusal of a controller's request in the namespace; undefined where it has rights there. */
  refusal(namespace: string | undefined, what: string): Error | undefined {
    if (namespace === undefined || !this.#closed.has(namespace)) return undefined;
    const message = `${what} is forbidden in namespace "${namespace}" (simulated)`;
    return new ApiError({ code: 403, reason: 'Forbidden', message });
  }

  /** Calls `end` when the controllers lose their rights in the namespace; returns the function that cancels this. */
  onLostRights(namespace: string | undefined, end: () => void): () => void {
    if (namespace === undefined) return () => {};
    const ends = this.#watches.get(namespace) ?? new Set();
    this.#watches.set(namespace, ends.add(end));
    return () => ends.delete(end);
  }

  get isDown(): boolean {
    return this.#scheduler.now < this.#upAt;
  }

  /** Delays the arrival of a process's requests by `ms`, even when the process dies meanwhile. */
  hold(process: string, ms: number): void {
    this.#heldUntil.set(process, this.#scheduler.now + ms);
  }

  /** Returns the milliseconds for which the process's requests are still delayed. */
  heldMs(process: string): number {
    return (this.#heldUntil.get(process) ?? 0) - this.#scheduler.now;
  }

  /** Calls `end` when the server's process is killed; returns the function that cancels this. */
  onKill(end: () => void): () => void {
    this.#connections.add(end);
    return () => this.#connections.delete(end);
  }

  /** Creates a namespace with the service account that pods need. */
  async namespace(name: string): Promise<void> {
    this.#put('namespaces', { metadata: { name } });
    this.#put('serviceaccounts', { metadata: { name: 'default', namespace: name } });
  }

  onCommit(listener: (change: Change) => void): void {
    this.store.subscribe(listener);
  }

  get<T extends KubeObject>(resource: Resource<T>, namespace: string | undefined, name: string): Stored<T> | undefined {
    return this.store.get(storageOf(resource), namespace, name) as Stored<T> | undefined;
  }

  list<T extends KubeObject>(resource: Resource<T>): Stored<T>[] {
    return this.store.list(storageOf(resource)) as unknown as Stored<T>[];
  }

  type(resource: Resource): ResourceType {
    return this.registry.catalogue.find(resource.group, resource.version, resource.plural) as ResourceType;
  }

  #put(storage: string, body: object): void {
    const type = this.registry.catalogue.byStorage(storage) as ResourceType;
    const request: WriteRequest = {
      user: { username: 'system:admin', groups: ['system:masters'] },
      fieldValidation: 'Ignore',
      dryRun: false,
      fieldManager: 'simulator',
      warn() {},
    };
    const { namespace } = (body as KubeObject).metadata;
    this.registry.create(type, namespace, body, request);
  }
}
