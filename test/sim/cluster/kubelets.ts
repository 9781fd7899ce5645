import type { StoredPod } from '../../../core/kube/builtin.ts';
import { ApiError } from '../../../core/kube/errors.ts';
import { pods } from '../../../core/kube/resources.ts';
import type { AttachOptions, ObjectRef, PodStream } from '../../../core/kube/types.ts';
import { turns } from '../../../core/resources/kinds.ts';
import { LABEL_SESSION_UID } from '../../../core/resources/names.ts';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import type { Process } from '../scheduler.ts';
import type { SimContainer } from './container.ts';
import type { KubeletOptions, Node, PodRates } from './kubelet-options.ts';
import { Nodes } from './nodes.ts';
import { Container } from './pod.ts';
import { podStatus, type SimPod, scheduled, second } from './pod-status.ts';
import { protocolOf } from './runner-image.ts';
import { RunnerlessContainer } from './runnerless-container.ts';
import { runnerlessWork } from './runnerless-work.ts';

/** Rates of a world without pod misfortunes. */
export const NO_POD_FAULTS: PodRates = {
  unschedulable: 0,
  image: 0,
  slow: 0,
  crash: 0,
  breaks: 0,
  logLost: 0,
  open: 0,
  hostile: 0,
  garbled: 0,
};

const isGated = ({ spec }: StoredPod) => Boolean(spec.schedulingGates?.length);

/** Scheduler and kubelets of the pods of sessions and pools. */
export class Kubelets {
  readonly nodes: Nodes;
  readonly #options: KubeletOptions;
  /** Pod uid → the pod. A pod whose object is gone stays while its container lives. */
  readonly #pods = new Map<string, SimPod>();

  constructor(options: KubeletOptions) {
    this.#options = options;
    this.nodes = new Nodes(options);
    options.server.onCommit((change) => this.#changed(change));
  }

  /** Current virtual time, milliseconds. */
  get now(): number {
    return this.#options.scheduler.now;
  }

  /** Running containers of all nodes, reachable or not. */
  get running(): { pod: SimPod; container: SimContainer }[] {
    return [...this.#pods.values()].flatMap((pod) =>
      pod.container && !pod.container.exit ? [{ pod, container: pod.container }] : [],
    );
  }

  /** Reports whether the pod's object exists and its container runs on a reachable node. */
  isAlive(podUID: string): boolean {
    const pod = this.#pods.get(podUID);
    return Boolean(pod && !pod.gone && pod.container && !pod.container.exit && pod.node?.reachable);
  }

  /** Reports whether the pod's object exists and its node is reachable. */
  isThere(podUID: string): boolean {
    const pod = this.#pods.get(podUID);
    return Boolean(pod && !pod.gone && pod.node?.reachable);
  }

  /** Reports whether the pod's container has been told to stop. */
  isTerminating(podUID: string): boolean {
    return this.#pods.get(podUID)?.terminating ?? false;
  }

  /** Name of the pod's node; undefined before it has one. */
  nodeOf(podUID: string): string | undefined {
    return this.#pods.get(podUID)?.node?.name;
  }

  container(podUID: string): SimContainer | undefined {
    return this.#pods.get(podUID)?.container;
  }

  attach(ref: ObjectRef, options: AttachOptions, controller: Process): PodStream {
    const { container } = this.#reach(ref);
    if (!container) throw new ApiError({ code: 500, reason: 'InternalError', message: 'no container yet' });
    return container.attach(options, controller);
  }

  log(ref: ObjectRef): Buffer[] {
    const { container } = this.#reach(ref);
    if (!container) throw new ApiError({ code: 400, reason: 'BadRequest', message: 'container is waiting to start' });
    const whole = Buffer.from(container.log.whole);
    const { dice, rates } = this.#options;
    const isRotated = dice.chance(rates().logLost);
    if (isRotated) container.isHardToRead = true;
    const rotated = isRotated ? whole.subarray(dice.int(0, whole.length)) : whole;
    const half = Math.floor(rotated.length / 2);
    return [rotated.subarray(0, half), rotated.subarray(half)];
  }

  /** Opens a log that is followed. Rejects as `log` does. */
  followed(ref: ObjectRef): { container: SimContainer; isReachable: () => boolean } {
    const pod = this.#reach(ref);
    if (!pod.container)
      throw new ApiError({ code: 400, reason: 'BadRequest', message: 'container is waiting to start' });
    return { container: pod.container, isReachable: () => pod.node?.reachable !== false };
  }

  /** Records that a log could not be read, or only in part. */
  logFailed(ref: ObjectRef): void {
    const container = this.container(this.#options.server.get(pods, ref.namespace, ref.name)?.metadata.uid ?? '');
    if (container) container.isHardToRead = true;
  }

  // ------------------------------------------------------------------------------------------------- misfortunes

  kill(pod: SimPod, reason: 'OOMKilled' | 'Error'): void {
    const { dice, rates } = this.#options;
    const { container } = pod;
    if (container && dice.chance(rates().logLost)) container.log.cut(dice.int(0, container.log.length));
    container?.die({ code: 137, reason });
  }

  evict(pod: SimPod): void {
    pod.evicted = true;
    pod.container?.die({ code: 137, reason: 'Error' });
  }

  /** Deletes a pod as `kubectl delete pod` does. */
  deleteBySomebody(pod: SimPod, force: boolean): void {
    const options = { uid: pod.uid, ...(force ? { gracePeriodSeconds: 0 } : {}) };
    void this.#options.server.admin.delete(pods, pod, options).catch(() => {});
  }

  /** Cuts the node off; with `dead`, ends its containers too. */
  loseNode(node: Node, dead: boolean): void {
    node.reachable = false;
    for (const pod of this.#pods.values()) {
      if (pod.node !== node) continue;
      if (pod.container) pod.container.isHardToRead = true;
      if (dead) pod.container?.die({ code: 137, reason: 'ContainerStatusUnknown' });
      else pod.container?.cut('connection');
    }
    this.nodes.reportSoon(node, 2000, 40_000, 'is missed');
  }

  /** Freezes all pods of the node, and those that start there meanwhile. */
  freezeNode(node: Node, ms: number): void {
    node.frozenUntil = Math.max(node.frozenUntil, this.now + ms);
    for (const { pod, container } of this.running) if (pod.node === node) container.process.pause(ms);
  }

  /** Deletes the pods of a node that does not answer; with `force`, removes their objects at once. */
  async drainLost(node: Node, force: boolean): Promise<void> {
    for (const pod of this.#pods.values()) {
      if (pod.node !== node || pod.gone || node.reachable) continue;
      await this.#options.server.admin
        .delete(pods, pod, { uid: pod.uid, ...(force ? { gracePeriodSeconds: 0 } : {}) })
        .catch(() => {});
    }
  }

  restoreNode(node: Node): void {
    node.reachable = true;
    this.nodes.reportSoon(node, 10, 3000, 'reports');
    for (const pod of [...this.#pods.values()]) {
      if (pod.node !== node) continue;
      if (pod.gone) this.#after(pod, 1, 500, 'container of a removed pod is ended', () => this.#removed(pod));
      else if (this.#object(pod)?.metadata.deletionTimestamp) this.#terminate(pod);
      else if (pod.container) this.#publishSoon(pod);
      else this.#after(pod, 10, 500, 'starts after all', () => this.#start(pod));
    }
  }

  // --------------------------------------------------------------------------------------------------- lifecycle

  #changed({ storage, type, object }: Change): void {
    if (storage !== 'pods' || object.metadata.labels?.[LABEL_SESSION_UID] === undefined) return;
    const { uid = '', name, namespace = '', deletionTimestamp } = object.metadata;
    let pod = this.#pods.get(uid);
    if (type === 'ADDED') {
      const added: SimPod = {
        namespace,
        name,
        uid,
        node: undefined,
        container: undefined,
        startedAt: '',
        waiting: undefined,
        gated: isGated(object as unknown as StoredPod),
        terminating: false,
        evicted: false,
        gone: false,
      };
      pod = added;
      this.#pods.set(uid, added);
      if (!added.gated) this.#after(added, 1, 40, 'is scheduled', () => this.#schedule(added));
    } else if (pod && type === 'DELETED') {
      const removed = pod;
      removed.gone = true;
      if (removed.node?.reachable !== false) this.#after(removed, 1, 500, 'was removed', () => this.#removed(removed));
    } else if (pod?.gated && !deletionTimestamp) {
      const gated = pod;
      gated.gated = isGated(object as unknown as StoredPod);
      if (!gated.gated) this.#after(gated, 1, 40, 'is scheduled', () => this.#schedule(gated));
    } else if (pod && deletionTimestamp && pod.node?.reachable) {
      const deleted = pod;
      this.#after(deleted, 1, 300, 'is told to stop', () => this.#terminate(deleted));
    }
  }

  async #schedule(pod: SimPod): Promise<void> {
    if (pod.gone) return;
    const { dice, rates, server } = this.#options;
    const candidates = this.nodes.all.filter(({ reachable, cordoned }) => reachable && !cordoned);
    if (candidates.length === 0 || dice.chance(rates().unschedulable)) {
      await this.#write(pod, { conditions: [scheduled('False', 'Unschedulable')] });
      this.#after(pod, 500, 30_000, 'is scheduled', () => this.#schedule(pod));
      return;
    }
    pod.node = dice.pick(candidates);
    const patch = { metadata: { uid: pod.uid }, spec: { nodeName: pod.node.name } };
    // A condition of before stays until the kubelet reports, as where the scheduler did not hear the binding's answer.
    await server.admin.patch(pods, pod, patch, { type: 'merge' }).catch(() => {});
    this.#after(pod, 20, 400, 'starts', () => this.#start(pod));
  }

  async #start(pod: SimPod): Promise<void> {
    const { dice, rates } = this.#options;
    if (pod.gone || pod.container || !pod.node?.reachable || pod.terminating) return;
    if (dice.chance(rates().image)) {
      pod.waiting = { reason: dice.pick(['ErrImagePull', 'ImagePullBackOff']), message: 'simulated' };
      this.#publish(pod);
      this.#after(pod, 1000, 60_000, 'starts', () => this.#start(pod));
      return;
    }
    pod.waiting = undefined;
    pod.startedAt = second(this.#options.server.clock.now());
    const container = this.#container(pod);
    pod.container = container;
    if (pod.node.frozenUntil > this.now) container.process.pause(pod.node.frozenUntil - this.now);
    if (dice.chance(rates().crash)) {
      container.die(
        dice.pick([
          { code: 1, reason: 'Error' },
          { code: 137, reason: 'OOMKilled' },
          { code: 128, reason: 'StartError' },
        ]),
      );
      return;
    }
    this.#publishSoon(pod);
  }

  #container(pod: SimPod): SimContainer {
    const { dice, rates, scheduler, observer, server } = this.#options;
    const common = {
      name: `${pod.name.slice(0, 6)}…${pod.name.split('-').at(-1)}`,
      podUID: pod.uid,
      scheduler,
      dice: dice.stream(`container ${pod.uid}`),
      observer,
      onExit: () => this.#publishSoon(pod),
    };
    const object = this.#object(pod);
    const work = object && runnerlessWork(object);
    const protocol = protocolOf(object?.spec.containers[0]?.image ?? '');
    const isHardened = !common.dice.stream('hardened').chance(rates().open);
    const hostile = common.dice.stream('hostile');
    const isHostile = hostile.chance(rates().hostile);
    if (!work)
      return new Container({
        ...common,
        ...{ protocol, isHardened, breaks: () => rates().breaks, garbled: () => rates().garbled },
        ...(isHostile && { hostile }),
      });
    const turn = () => server.list(turns).find(({ metadata }) => metadata.uid === work.turn);
    return new RunnerlessContainer({ ...common, work, attempt: () => turn()?.status?.attempt ?? 1 });
  }

  /** Stops a pod that is being deleted: its container gets its grace period, then the object is removed. */
  #terminate(pod: SimPod): void {
    if (pod.gone || !pod.node?.reachable) return;
    const object = this.#object(pod);
    const { container } = pod;
    if (!container || container.exit) {
      // A kubelet reports how a pod has ended before it removes it, and starts nothing in it any more.
      pod.terminating = true;
      this.#publish(pod);
      return;
    }
    const graceMs = (object?.metadata.deletionGracePeriodSeconds ?? 30) * 1000;
    if (!pod.terminating) container.terminate();
    pod.terminating = true;
    this.#options.scheduler.after(graceMs, undefined, `grace of ${pod.name} is over`, () =>
      container.die({ code: 137, reason: 'Error' }),
    );
  }

  #removed(pod: SimPod): void {
    pod.container?.die({ code: 137, reason: 'Error' });
    this.#pods.delete(pod.uid);
  }

  #remove(pod: SimPod): void {
    if (pod.gone || !pod.node?.reachable) return;
    void this.#options.server.admin.delete(pods, pod, { uid: pod.uid, gracePeriodSeconds: 0 }).catch(() => {});
  }

  #publishSoon(pod: SimPod): void {
    this.#after(pod, 5, 1500, 'is reported', () => this.#publish(pod));
  }

  #publish(pod: SimPod): void {
    if (pod.gone || !pod.node?.reachable) return;
    const { container } = pod;
    const exit = container?.exit;
    const status = podStatus(pod, this.#options.server.clock.now());
    void this.#write(pod, status);
    const marked = this.#object(pod)?.metadata.deletionTimestamp !== undefined;
    if (marked && (exit || !container)) this.#after(pod, 1, 300, 'is removed', () => this.#remove(pod));
  }

  async #write(pod: SimPod, status: object): Promise<void> {
    const object = this.#object(pod);
    if (!object) return;
    const next = { ...object, status: { ...object.status, ...status } } as StoredPod;
    await this.#options.server.admin.replace(pods, next, { subresource: 'status' }).catch((error: Error) => {
      this.#options.trace.line(() => ['kubelet', `status of ${pod.name} refused:`, error.message]);
    });
  }

  #object(pod: SimPod): StoredPod | undefined {
    const object = this.#options.server.get(pods, pod.namespace, pod.name);
    return object?.metadata.uid === pod.uid ? object : undefined;
  }

  #reach({ namespace, name }: ObjectRef): SimPod {
    const object = this.#options.server.get(pods, namespace, name);
    const pod = object && this.#pods.get(object.metadata.uid);
    if (!pod) throw new ApiError({ code: 404, reason: 'NotFound', message: `pods "${name}" not found` });
    if (!pod.node?.reachable) {
      throw new ApiError({ code: 500, reason: 'InternalError', message: `dial to the node of ${name} failed` });
    }
    return pod;
  }

  #after(pod: SimPod, low: number, high: number, what: string, run: () => void): void {
    const { scheduler, dice, rates } = this.#options;
    const ms = dice.skewed(low, high) * (dice.chance(rates().slow) ? dice.int(2, 30) : 1);
    scheduler.after(ms, undefined, `pod ${pod.name} ${what}`, run);
  }
}
