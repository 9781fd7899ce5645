/** Gives back the place of an attach that is open, or has failed. Further calls have no effect. */
export type Leave = () => void;

interface Waiting {
  isUrgent(): boolean;
  enter(leave: Leave): void;
}

interface Node {
  opening: number;
  readonly waiting: Waiting[];
}

/**
 * Limits how many attaches to the pods of one node are being opened at once. A new leader attaches to every pod that it
 * finds: without a limit, a kubelet with hundreds of pods is too busy with all of them to complete any in time.
 */
export class AttachLimit {
  readonly #perNode: number;
  /** Nodes with attaches that are being opened, by name. */
  readonly #nodes = new Map<string, Node>();

  constructor(perNode: number) {
    this.#perNode = perNode;
  }

  /** Reports whether an attach to the node may be opened now. */
  hasRoom(node: string): boolean {
    return (this.#nodes.get(node)?.opening ?? 0) < this.#perNode;
  }

  /**
   * Resolves once an attach to the node may be opened, with what gives its place back. Urgent ones come first; `isUrgent` is
   * asked whenever a place is free. Resolves with undefined when the signal aborts.
   */
  enter(node: string, isUrgent: () => boolean, signal: AbortSignal): Promise<Leave | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    const known = this.#nodes.get(node) ?? { opening: 0, waiting: [] };
    this.#nodes.set(node, known);
    if (known.opening < this.#perNode) return Promise.resolve(this.#place(node, known));
    return new Promise((resolve) => {
      const done = (leave?: Leave) => {
        signal.removeEventListener('abort', giveUp);
        resolve(leave);
      };
      const waiting = { isUrgent, enter: done };
      const giveUp = () => {
        known.waiting.splice(known.waiting.indexOf(waiting), 1);
        done();
      };
      known.waiting.push(waiting);
      signal.addEventListener('abort', giveUp);
    });
  }

  #place(name: string, node: Node): Leave {
    node.opening += 1;
    let isLeft = false;
    return () => {
      if (isLeft) return;
      isLeft = true;
      node.opening -= 1;
      const urgent = node.waiting.findIndex(({ isUrgent }) => isUrgent());
      const [next] = node.waiting.splice(Math.max(0, urgent), 1);
      if (next) next.enter(this.#place(name, node));
      else if (node.opening === 0) this.#nodes.delete(name);
    };
  }
}
