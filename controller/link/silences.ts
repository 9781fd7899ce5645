import type { Clock } from '../../core/runtime.ts';

/** Time for which a runner owes an answer before that says something about its node. Most answers take milliseconds. */
const NOTABLE_MS = 5_000;

interface Silent {
  readonly since: number;
  /** End of what its node may be at fault for, monotonic milliseconds: another runner of the node was heard by then. */
  nodeAnsweredAt?: number;
}

/** What other runners of a node say about the silence of one. */
export interface NodeAnswers {
  /** Others owe an answer too, and none has been heard since this one does. */
  nodeSilent: boolean;
  /** Time before which the node may be at fault, monotonic milliseconds; undefined while none of the others has been heard. */
  nodeAnsweredAt: number | undefined;
}

/**
 * Runners that owe an answer, by node. A node with more work than CPU, or whose container runtime hangs, keeps all of its runners
 * from answering: what they owe meanwhile says nothing about them.
 */
export class Silences {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Name of a node → its runners that owe an answer, by what stands for them. */
  readonly #nodes = new Map<string, Map<object, Silent>>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Notes whether a runner of the node owes an answer. */
  update(node: string, runner: object, isSilent: boolean): void {
    const silent = this.#nodes.get(node);
    if (!isSilent) {
      if (silent?.delete(runner) && silent.size === 0) this.#nodes.delete(node);
    } else if (!silent) {
      this.#nodes.set(node, new Map([[runner, { since: this.#clock.monotonic() }]]));
    } else if (!silent.has(runner)) {
      silent.set(runner, { since: this.#clock.monotonic() });
    }
  }

  /** Notes that a runner of the node was heard; called before `update` with the silence that this ends. */
  heard(node: string, runner: object): void {
    const silent = this.#nodes.get(node);
    for (const [other, silence] of silent ?? []) {
      if (other === runner) continue;
      silence.nodeAnsweredAt ??= this.#othersAreSilent(silent, other) ? this.#clock.monotonic() : silence.since;
    }
  }

  of(node: string, runner: object): NodeAnswers {
    const silent = this.#nodes.get(node);
    const nodeAnsweredAt = silent?.get(runner)?.nodeAnsweredAt;
    return { nodeAnsweredAt, nodeSilent: nodeAnsweredAt === undefined && this.#othersAreSilent(silent, runner) };
  }

  #othersAreSilent(silent: ReadonlyMap<object, Silent> | undefined, runner: object): boolean {
    const least = this.#clock.monotonic() - NOTABLE_MS;
    return [...(silent ?? [])].some(([other, { since }]) => other !== runner && since <= least);
  }
}
