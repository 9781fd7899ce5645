import { nodes } from '../../../core/kube/resources.ts';
import type { KubeletOptions, Node } from './kubelet-options.ts';
import { second } from './pod-status.ts';

/** The nodes as the API shows them. */
export class Nodes {
  readonly all: readonly Node[] = ['node-a', 'node-b'].map((name) => ({
    name,
    reachable: true,
    cordoned: false,
    frozenUntil: 0,
  }));
  readonly #options: Pick<KubeletOptions, 'scheduler' | 'server' | 'dice'>;

  constructor(options: Pick<KubeletOptions, 'scheduler' | 'server' | 'dice'>) {
    this.#options = options;
  }

  async furnish(): Promise<void> {
    for (const { name } of this.all) await this.#options.server.admin.create(nodes, { metadata: { name } });
    for (const node of this.all) await this.#report(node);
  }

  /** Cordons or uncordons a node as `kubectl` does. */
  cordon(node: Node, cordoned: boolean): void {
    node.cordoned = cordoned;
    const patch = { spec: { unschedulable: cordoned } };
    void this.#options.server.admin.patch(nodes, node, patch as object, { type: 'merge' }).catch(() => {});
  }

  reportSoon(node: Node, low: number, high: number, what: string): void {
    const { scheduler, dice } = this.#options;
    scheduler.after(dice.skewed(low, high), undefined, `${node.name} ${what}`, () => void this.#report(node));
  }

  /** Writes the node's Ready condition: the kubelet's report, or Unknown when the node is unreachable. */
  async #report(node: Node): Promise<void> {
    const { server } = this.#options;
    const object = server.get(nodes, undefined, node.name);
    const status = node.reachable ? 'True' : 'Unknown';
    const before = object?.status?.conditions?.find(({ type }) => type === 'Ready');
    if (!object || before?.status === status) return;
    const condition = { type: 'Ready', status, lastTransitionTime: second(server.clock.now()) } as const;
    const next = { ...object, status: { ...object.status, conditions: [condition] } };
    await server.admin.replace(nodes, next, { subresource: 'status' }).catch(() => {});
  }
}
