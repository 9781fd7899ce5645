import { sessionpools } from '../../../core/resources/kinds.ts';
import { repeated, type Surroundings } from './repeated.ts';
import { CLASSES, NAMESPACES } from './users.ts';
import { create, edit, nothing } from './writes.ts';

/** Maximum pods that a pool asks for. */
const MOST = 4;

/** Users who create, scale, edit and delete SessionPools, until `end`. */
export class PoolOwners {
  readonly #here: Surroundings;
  readonly #stop: () => void;

  constructor(surroundings: Surroundings, everyMs?: number) {
    this.#here = surroundings;
    // Drawn before the pools.
    const intervalMs = everyMs ?? surroundings.dice.skewed(2_000, 40_000);
    for (const namespace of NAMESPACES) {
      for (const sessionClass of CLASSES) if (surroundings.dice.chance(0.9)) this.#create(namespace, sessionClass);
    }
    this.#stop = repeated(surroundings, 'an owner of pools', intervalMs, () => this.#change());
  }

  /** Ends the changes. Pools stay as they are, and have to come to rest. */
  end(): void {
    this.#stop();
  }

  #change(): void {
    const { server, dice, trace } = this.#here;
    const pool = dice.pick(server.list(sessionpools));
    if (!pool || dice.chance(0.2)) {
      this.#create(dice.pick(NAMESPACES), dice.pick(CLASSES));
      return;
    }
    const { name, namespace } = pool.metadata;
    trace.line(() => ['user', 'changes', `pool ${namespace}/${name}`]);
    if (dice.chance(0.15)) {
      const propagationPolicy = dice.chance(0.3) ? 'Orphan' : 'Background';
      void server.admin.delete(sessionpools, { namespace, name }, { propagationPolicy }).catch(nothing);
    } else if (dice.chance(0.1)) void edit(server, sessionpools, pool, { class: dice.pick(CLASSES) });
    else void edit(server, sessionpools, pool, { replicas: this.#some() });
  }

  #some(): number {
    const { dice } = this.#here;
    return dice.chance(0.2) ? 0 : dice.int(1, MOST);
  }

  #create(namespace: string, sessionClass: string): void {
    const spec = { class: sessionClass, replicas: this.#some() };
    void create(this.#here.server, sessionpools, namespace, sessionClass, spec);
  }
}
