import type { Node } from '../../core/kube/builtin.ts';
import { Informer } from '../../core/kube/informer.ts';
import { nodes } from '../../core/kube/resources.ts';
import type { Stored } from '../../core/kube/types.ts';
import { parseQuantity } from '../../core/resources/quantity.ts';
import type { NodeFacts } from '../observed/world.ts';
import type { CacheTools } from './tools.ts';

/** Form in which nodes report their CPUs. Other forms are possible, but none is known. */
const CPUS = /^\d+m?$/;

export interface NodesOptions extends Omit<CacheTools, 'namespaces' | 'watchers'> {
  /** Handler of changed facts about a node. */
  onChange(name: string): void;
}

export interface NodeLister {
  /** Facts about a node; undefined where nodes may not be read, and for a node that does not exist. */
  node(name: string | undefined): NodeFacts | undefined;
  /** CPUs that pods can have on the nodes that take any; 0 where nodes may not be read. */
  cpus(): number;
}

/** Follows the facts about nodes for decisions on their pods. Where nodes may not be read it stays empty and logs so. */
export class Nodes {
  readonly #informer: Informer<Node>;

  constructor({ onChange, ...options }: NodesOptions) {
    this.#informer = new Informer<Node>({ ...options, resource: nodes, transform: slimNode });
    this.#informer.addHandler({
      // Reconciles do not wait until nodes are known. A node that takes no pods may have a pod leave it; any other changes nothing.
      add: (node) => {
        if (!takesPods(node)) onChange(node.metadata.name);
      },
      update: (node, old) => {
        // A kubelet writes its Node every few minutes; a mere heartbeat is no change.
        if (JSON.stringify(nodeFacts(node)) !== JSON.stringify(nodeFacts(old))) onChange(node.metadata.name);
      },
    });
  }

  facts(name: string | undefined): NodeFacts | undefined {
    const node = name === undefined ? undefined : this.#informer.get(undefined, name);
    return node && nodeFacts(node);
  }

  cpus(): number {
    return this.#informer
      .list()
      .filter(takesPods)
      .map(({ status }) => status?.allocatable?.cpu ?? '')
      .filter((cpu) => CPUS.test(cpu))
      .reduce((sum, cpu) => sum + parseQuantity(cpu), 0);
  }

  start(): void {
    this.#informer.start();
  }

  stop(): Promise<void> {
    return this.#informer.stop();
  }
}

function nodeFacts({ spec, status }: Node): NodeFacts {
  // Unknown: the node lifecycle controller has not heard of the kubelet (pkg/controller/nodelifecycle).
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return {
    cordoned: spec?.unschedulable === true,
    ready: ready?.status === 'True',
    ...(ready?.lastTransitionTime ? { since: Date.parse(ready.lastTransitionTime) } : {}),
  };
}

function takesPods(node: Stored<Node>): boolean {
  const { ready, cordoned } = nodeFacts(node);
  return ready && !cordoned;
}

function slimNode({ metadata, spec, status }: Stored<Node>): Stored<Node> {
  const { name, uid, resourceVersion, creationTimestamp } = metadata;
  return {
    metadata: { name, uid, resourceVersion, creationTimestamp },
    ...(spec?.unschedulable ? { spec: { unschedulable: true } } : {}),
    status: {
      conditions: status?.conditions?.filter(({ type }) => type === 'Ready') ?? [],
      ...(status?.allocatable?.cpu ? { allocatable: { cpu: status.allocatable.cpu } } : {}),
    },
  };
}
