import type { Clock } from '../../core/runtime.ts';

/** Time for which a runner owes an answer before that says something about its node. Most answers take milliseconds. */
const NOTABLE_MS = 5_000;

/** The silence of one runner; times in monotonic milliseconds. */
interface RunnerSilence {
  readonly since: number;
  /** Time until which the runner's node may be at fault: another runner of the node was heard then. */
  nodeAnsweredAt?: number;
}

/** Whether the node of a silent runner may be at fault for the silence, as the other runners of the node show. */
export interface NodeAnswers {
  /** True while other runners of the node owe an answer too, and none of them has been heard during the runner's silence. */
  nodeSilent: boolean;
  /** Time until which the node may be at fault, monotonic milliseconds; undefined while no other runner has been heard. */
  nodeAnsweredAt: number | undefined;
}

/**
 * Runners that owe an answer, by node. A node with more work than CPU, or whose container runtime hangs, keeps all of its runners
 * from answering: what they owe until then says nothing about them.
 */
export class Silences {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Name of a node → the silences of its runners that owe an answer, by the object that stands for the runner. */
  readonly #nodes = new Map<string, Map<object, RunnerSilence>>();
  /** Runner that owes an answer → the name of the node that it is listed under. */
  readonly #listed = new Map<object, string>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /**
   * Notes whether a runner of the node owes an answer. The node of a pod may become known later than the attach is open: the runner is
   * then no longer listed elsewhere. Runners whose node is not known, `''`, say nothing about each other and are not listed.
   */
  update(node: string, runner: object, isSilent: boolean): void {
    const listed = this.#listed.get(runner);
    if (listed !== undefined && (listed !== node || !isSilent)) this.#remove(listed, runner);
    if (!isSilent || node === '') return;
    const silences = this.#nodes.get(node) ?? new Map<object, RunnerSilence>();
    if (!silences.has(runner)) silences.set(runner, { since: this.#clock.monotonic() });
    this.#nodes.set(node, silences);
    this.#listed.set(runner, node);
  }

  #remove(node: string, runner: object): void {
    const silences = this.#nodes.get(node);
    silences?.delete(runner);
    if (silences?.size === 0) this.#nodes.delete(node);
    this.#listed.delete(runner);
  }

  /** Notes that a runner of the node was heard; called before `update` with the silence that this ends. */
  heard(node: string, runner: object): void {
    for (const [other, silence] of this.#nodes.get(node) ?? []) {
      if (other === runner) continue;
      silence.nodeAnsweredAt ??= this.#othersAreSilent(node, other) ? this.#clock.monotonic() : silence.since;
    }
  }

  of(node: string, runner: object): NodeAnswers {
    const nodeAnsweredAt = this.#nodes.get(node)?.get(runner)?.nodeAnsweredAt;
    return { nodeAnsweredAt, nodeSilent: nodeAnsweredAt === undefined && this.#othersAreSilent(node, runner) };
  }

  #othersAreSilent(node: string, runner: object): boolean {
    const least = this.#clock.monotonic() - NOTABLE_MS;
    for (const [other, { since }] of this.#nodes.get(node) ?? []) if (other !== runner && since <= least) return true;
    return false;
  }
}
