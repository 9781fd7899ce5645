import type { Clock } from '../../core/runtime.ts';

/**
 * Order in which attaches to the pods of one node are opened. WaitedFor: somebody waits for the session. Unclaimed: the pod
 * of a pool, which a session may claim. AtRest: nobody waits for the session.
 */
export type Priority = 'WaitedFor' | 'Unclaimed' | 'AtRest';

/** An attach that is to be opened. */
export interface PendingAttach {
  priority(): Priority;
  /** Reports whether the pod gave no answer over its last attach. */
  isSilent?(): boolean;
}

/** Gives back the place of an attach that is open, or has failed. Further calls have no effect. */
export type Leave = () => void;

type Waiting = Map<PendingAttach, (leave: Leave) => void>;

interface Node {
  opening: number;
  /** Those of them whose pods are silent. */
  silent: number;
  /** An attach to a session at rest is being opened, or the pause after one is not over. */
  isResting: boolean;
  readonly waiting: Record<Priority, Waiting>;
}

/** The pause after an attach to a session at rest, as a multiple of the time that its opening took. */
const PAUSE = 3;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Limits how many attaches to the pods of one node are being opened at once. A new leader attaches to every pod that it
 * finds: without a limit, a kubelet with hundreds of pods is too busy with all of them to complete any in time. Attaches to
 * sessions at rest are opened one at a time, with pauses, when no other waits: all others come first. Silent pods have half
 * of the places, as each keeps its place until it is given up.
 */
export class AttachLimit {
  readonly #perNode: number;
  readonly #ofSilent: number;
  readonly #clock: Pick<Clock, 'monotonic' | 'setTimer'>;
  /** Nodes with attaches that are being opened or wait, by name. */
  readonly #nodes = new Map<string, Node>();

  constructor(perNode: number, clock: Pick<Clock, 'monotonic' | 'setTimer'>) {
    this.#perNode = perNode;
    this.#ofSilent = Math.ceil(perNode / 2);
    this.#clock = clock;
  }

  /** Reports whether an attach of this priority to the node may be opened now. */
  hasRoom(node: string, priority: Priority, isSilent = false): boolean {
    const { opening = 0, silent = 0, isResting = false } = this.#nodes.get(node) ?? {};
    const fits = opening < this.#perNode && (!isSilent || silent < this.#ofSilent);
    return fits && !(priority === 'AtRest' && isResting);
  }

  /**
   * Resolves once an attach to the node may be opened, with what gives its place back. Resolves with undefined when the signal
   * aborts. The priority is asked for now, and again by `reconsider`.
   */
  enter(name: string, attach: PendingAttach, signal: AbortSignal): Promise<Leave | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    const known = this.#nodes.get(name);
    const node = known ?? { opening: 0, silent: 0, isResting: false, waiting: emptyQueues() };
    if (!known) this.#nodes.set(name, node);
    return new Promise((resolve) => {
      const giveUp = () => {
        withdraw(node, attach);
        resolve(undefined);
        this.#forget(name, node);
      };
      signal.addEventListener('abort', giveUp);
      node.waiting[attach.priority()].set(attach, (leave) => {
        signal.removeEventListener('abort', giveUp);
        resolve(leave);
      });
      this.#admit(name, node);
    });
  }

  /** Asks for the priority of an attach again. Has no effect on one that does not wait for this node. */
  reconsider(name: string, attach: PendingAttach): void {
    const node = this.#nodes.get(name);
    const priority = attach.priority();
    if (!node || node.waiting[priority].has(attach)) return;
    const enter = withdraw(node, attach);
    if (!enter) return;
    node.waiting[priority].set(attach, enter);
    this.#admit(name, node);
  }

  #admit(name: string, node: Node): void {
    const { WaitedFor, Unclaimed, AtRest } = node.waiting;
    while (node.opening < this.#perNode) {
      const queues = node.isResting ? [WaitedFor, Unclaimed] : [WaitedFor, Unclaimed, AtRest];
      const next = queues.flatMap((queue) => this.#firstOf(queue, node)).at(0);
      if (!next) return;
      const { queue, attach, enter } = next;
      queue.delete(attach);
      enter(this.#place(name, node, { atRest: queue === AtRest, isSilent: attach.isSilent?.() === true }));
    }
  }

  /** The first attach of the queue that may be opened, if any. */
  #firstOf(
    queue: Waiting,
    { silent }: Node,
  ): { queue: Waiting; attach: PendingAttach; enter: (leave: Leave) => void }[] {
    for (const [attach, enter] of queue) {
      if (silent < this.#ofSilent || !attach.isSilent?.()) return [{ queue, attach, enter }];
    }
    return [];
  }

  #place(name: string, node: Node, { atRest, isSilent }: { atRest: boolean; isSilent: boolean }): Leave {
    const since = this.#clock.monotonic();
    node.opening += 1;
    if (isSilent) node.silent += 1;
    if (atRest) node.isResting = true;
    let isLeft = false;
    return () => {
      if (isLeft) return;
      isLeft = true;
      node.opening -= 1;
      if (isSilent) node.silent -= 1;
      if (atRest) {
        const pauseMs = Math.min(PAUSE * (this.#clock.monotonic() - since), LONGEST_PAUSE_MS);
        this.#clock.setTimer(pauseMs, () => {
          node.isResting = false;
          this.#next(name, node);
        });
      }
      this.#next(name, node);
    };
  }

  #next(name: string, node: Node): void {
    this.#admit(name, node);
    this.#forget(name, node);
  }

  #forget(name: string, { opening, isResting, waiting }: Node): void {
    const isWaiting = Object.values(waiting).some(({ size }) => size > 0);
    if (opening === 0 && !isResting && !isWaiting) this.#nodes.delete(name);
  }
}

function emptyQueues(): Node['waiting'] {
  return { WaitedFor: new Map(), Unclaimed: new Map(), AtRest: new Map() };
}

/** Takes an attach out of its queue; returns what enters it. */
function withdraw({ waiting }: Node, attach: PendingAttach): ((leave: Leave) => void) | undefined {
  for (const queue of Object.values(waiting)) {
    const enter = queue.get(attach);
    if (enter && queue.delete(attach)) return enter;
  }
  return undefined;
}
