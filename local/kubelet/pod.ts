/** Worker of one pod of this node, from its scheduling to its removal. */

import { ApiError, isConflict, isNotFound } from '../../core/kube/errors.ts';
import { type Clock, type Logger, pause } from '../../core/runtime.ts';
import type { Store } from '../apiserver/types.ts';
import { parseQuantity } from '../apiserver/validation/quantity.ts';
import type { Claims } from './claims.ts';
import type { ContainerDeps } from './container.ts';
import { ContainerLoop, type LoopDeps } from './container-loop.ts';
import { ContainerConfigError, commandLine, containerEnvironment } from './environment.ts';
import type { PodEvents } from './events.ts';
import { MARKER_CONTAINER, MARKER_POD, MARKER_ROOT } from './markers.ts';
import { writeProjected } from './projected.ts';
import type { PodFolders, PodRecord } from './records.ts';
import { podStatus, restarts, timestamp } from './status.ts';
import { type Container, type ContainerStatus, type Images, type Pod, pods } from './types.ts';
import { makeVolumes, underRoot, workingDirectory } from './volumes.ts';

/** Time between TERM and KILL for a pod that was removed by force, milliseconds; as in a real kubelet. */
const FORCED_GRACE_MS = 1_000;
/** Wait before a write is repeated that could not be stored, milliseconds. */
const STORE_RETRY_MS = 1_000;

export interface PodDeps {
  store: Store;
  folders: PodFolders;
  claims: Claims;
  images: Images;
  nodeName: string;
  container: ContainerDeps;
  clock: Clock;
  logger: Logger;
  events: PodEvents;
  /** Aborts when the kubelet stops: writes that cannot be stored are then given up. */
  stopping: AbortSignal;
}

interface Ended {
  reason: string;
  message: string;
}

const LOST: Ended = {
  reason: 'NodeRestart',
  message: 'The embedded cluster stopped while the pod ran; its processes are gone.',
};

const STOPPED: Ended = {
  reason: 'Terminated',
  message: 'Pod was terminated because the embedded cluster was stopped.',
};

/** Reports scheduling gates: a scheduler leaves a pod alone until they have been removed. */
const isHeldBack = ({ spec }: Pod) => Boolean(spec.schedulingGates?.length);

export class PodWorker {
  readonly uid: string;
  readonly loops: ContainerLoop[];
  readonly #deps: PodDeps;
  readonly #record: PodRecord;
  /** True if an earlier kubelet has started the pod. */
  readonly #hadRun: boolean;
  readonly #stopping = new AbortController();
  readonly #startTime: string;
  #pod: Pod;
  #ended: Ended | undefined;
  /** True once the object is gone: no status is written any more. */
  #removed = false;
  #running: Promise<void> = Promise.resolve();
  #terminating: Promise<void> | undefined;
  #killAt = Number.POSITIVE_INFINITY;
  #cancelKill = () => {};
  #dirty = false;
  #writing: Promise<void> | undefined;

  /** `record` is the record of an earlier kubelet about the pod, whose processes are gone. */
  constructor(deps: PodDeps, pod: Pod, record: PodRecord | undefined) {
    this.uid = pod.metadata.uid;
    this.#deps = deps;
    this.#pod = pod;
    this.#record = record ?? { uid: this.uid, containers: {} };
    this.#hadRun = record !== undefined;
    this.#startTime = pod.status?.startTime ?? timestamp(deps.clock.now());
    const statuses = new Map((pod.status?.containerStatuses ?? []).map((status) => [status.name, status]));
    this.loops = pod.spec.containers.map(
      (spec) => new ContainerLoop(this.#loopDeps(), spec, this.#before(statuses.get(spec.name))),
    );
  }

  get pod(): Pod {
    return this.#pod;
  }

  /** Starts the containers. A pod that ran under an earlier kubelet and may not restart becomes Failed. */
  start(): void {
    const phase = this.#pod.status?.phase;
    if (phase === 'Succeeded' || phase === 'Failed') return;
    if (this.#hadRun && !restarts(this.#pod.spec.restartPolicy, 137)) {
      this.#ended = LOST;
      this.#publish();
      return;
    }
    if (!this.#pod.metadata.deletionTimestamp && !isHeldBack(this.#pod)) this.#running = this.#run();
  }

  /** Takes a newer version of the object. */
  update(pod: Pod): void {
    const wasHeldBack = isHeldBack(this.#pod);
    if (!this.#writing) this.#pod = pod;
    if (wasHeldBack && !isHeldBack(this.#pod)) this.start();
    if (pod.metadata.deletionTimestamp) {
      const first = this.#terminating === undefined;
      const stopped = this.terminate((pod.metadata.deletionGracePeriodSeconds ?? 30) * 1_000);
      if (first) stopped.then(() => this.#delete());
    }
  }

  /** Ends the remaining processes and removes the pod's folders, because the object is gone. */
  async removed(): Promise<void> {
    this.#removed = true;
    await this.terminate(FORCED_GRACE_MS);
    try {
      this.#deps.folders.remove(this.uid);
    } catch (error) {
      this.#deps.logger.warn({ pod: this.#pod.metadata.name, uid: this.uid, err: error }, 'pod folder not removed');
    }
  }

  /**
   * Ends the pod, because the node stops. A pod that may not restart is then Failed; any other continues at the
   * next start.
   */
  async shutdown(graceMs: number): Promise<void> {
    const asked = (this.#pod.spec.terminationGracePeriodSeconds ?? 30) * 1_000;
    const interrupted = this.loops.some((loop) => loop.current?.running);
    if (interrupted && !restarts(this.#pod.spec.restartPolicy, 143)) this.#ended = STOPPED;
    await this.terminate(Math.min(asked, graceMs));
  }

  /**
   * Sends TERM, and KILL after `graceMs`; a later call can only bring the KILL forward. Resolves when no process is
   * left.
   */
  terminate(graceMs: number): Promise<void> {
    const { clock } = this.#deps;
    const killAt = clock.monotonic() + graceMs;
    if (killAt < this.#killAt) {
      this.#killAt = killAt;
      this.#cancelKill();
      this.#cancelKill = clock.setTimer(graceMs, () => {
        for (const loop of this.loops) loop.kill();
      });
    }
    this.#terminating ??= this.#terminate();
    return this.#terminating;
  }

  async #terminate(): Promise<void> {
    for (const loop of this.loops) {
      if (loop.current?.running) this.#event('Normal', 'Killing', `Stopping container ${loop.spec.name}`);
    }
    this.#stopping.abort();
    for (const loop of this.loops) loop.terminate();
    await this.#running;
    this.#cancelKill();
    await this.#flush();
  }

  async #run(): Promise<void> {
    const { logger } = this.#deps;
    try {
      if (!(await this.#stored('pod not bound to the node', () => this.#bind()))) return;
      if (this.#removed) return;
      this.#publish();
      await Promise.all(this.loops.map((loop) => loop.run(this.#stopping.signal)));
      await this.#flush();
    } catch (error) {
      logger.error({ pod: this.#pod.metadata.name, uid: this.uid, err: error }, 'pod could not be run');
    }
  }

  /** Sets the pod's node, as a scheduler does. */
  async #bind(): Promise<void> {
    const { store, nodeName } = this.#deps;
    const { namespace, name } = this.#pod.metadata;
    while (!this.#pod.spec.nodeName && !this.#removed) {
      const { uid, resourceVersion } = this.#pod.metadata;
      const patch = { metadata: { uid, resourceVersion }, spec: { nodeName } };
      try {
        this.#pod = await store.patch(pods, { namespace, name }, patch, { type: 'merge' });
        this.#event('Normal', 'Scheduled', `Successfully assigned ${namespace}/${name} to ${nodeName}`);
      } catch (error) {
        await this.#reread(error);
      }
    }
  }

  #loopDeps(): LoopDeps {
    const { container, clock, images, folders } = this.#deps;
    let volumes = false;
    return {
      container,
      clock,
      images,
      restartPolicy: this.#pod.spec.restartPolicy,
      logPath: (name, restartCount) => folders.log(this.uid, name, restartCount),
      record: (name, restartCount, process) => {
        this.#record.containers[name] = process ? { restartCount, process } : { restartCount };
        folders.write(this.#record);
      },
      changed: () => this.#publish(),
      event: (type, reason, message) => this.#event(type, reason, message),
      prepare: async (spec, image) => {
        this.#checkSupported(spec);
        const root = folders.root(this.uid);
        if (!volumes) makeVolumes(root, this.#pod.spec, await this.#deps.claims.paths(this.#pod));
        if (!volumes) await writeProjected(this.#deps.store, this.#pod, root);
        volumes = true;
        const env = await this.#environment(spec, image.env ?? {}, root);
        return {
          argv: commandLine(spec, image.entrypoint, env),
          workingDir: workingDirectory(root, this.#pod.spec, spec.workingDir ?? image.workingDir),
          env,
          programs: image.programs,
        };
      },
    };
  }

  #checkSupported(spec: Container): void {
    if (spec.tty) throw new ContainerConfigError('the embedded cluster has no terminals: leave out tty');
    if (this.#pod.spec.initContainers?.length) {
      throw new ContainerConfigError('the embedded cluster has no init containers');
    }
  }

  /** Passes only the search path and the time zone of this program's environment on. */
  async #environment(spec: Container, image: Record<string, string>, root: string): Promise<Record<string, string>> {
    const base = {
      PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
      ...(process.env.TZ ? { TZ: process.env.TZ } : {}),
      HOSTNAME: this.#pod.metadata.name,
      HOME: underRoot(root, '/home'),
      TMPDIR: underRoot(root, '/tmp'),
      ...image,
    };
    const env = await containerEnvironment(this.#deps.store, this.#pod, spec, this.#deps.nodeName, base);
    const memory = parseQuantity(spec.resources?.limits?.memory ?? '');
    return {
      ...env,
      // Processes have no cgroup here, so the runner holds its session to the limit.
      ...(memory ? { BERTH_LOCAL_MEMORY: String(Math.floor(memory)) } : {}),
      [MARKER_ROOT]: root,
      [MARKER_POD]: this.uid,
      [MARKER_CONTAINER]: spec.name,
    };
  }

  /** Returns a container's state as an earlier kubelet left it; a started one is gone. */
  #before(status: ContainerStatus | undefined) {
    if (!status) return undefined;
    const { restartCount, state, lastState } = status;
    if (!this.#hadRun || state.terminated) return { restartCount, state, lastState };
    const now = timestamp(this.#deps.clock.now());
    const startedAt = state.running?.startedAt ?? now;
    const message = 'The container did not survive the stop of the embedded cluster.';
    const terminated = { exitCode: 137, reason: 'ContainerStatusUnknown', message, startedAt, finishedAt: now };
    return { restartCount, state: { terminated }, lastState };
  }

  #event(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#deps.events.emit(this.#pod, type, reason, message);
  }

  #publish(): void {
    this.#dirty = true;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async #flush(): Promise<void> {
    while (this.#writing) await this.#writing;
  }

  async #write(): Promise<void> {
    const { store, clock } = this.#deps;
    const write = async () => {
      if (this.#removed) return;
      this.#dirty = false;
      const views = this.loops.map((loop) => loop.view);
      const status = podStatus(this.#pod, views, clock.now(), this.#startTime, this.#ended);
      try {
        this.#pod = await store.replace(pods, { ...this.#pod, status }, { subresource: 'status' });
      } catch (error) {
        await this.#reread(error);
        this.#dirty = true;
      }
    };
    while (this.#dirty && !this.#removed) await this.#stored('pod status not written', write);
  }

  /**
   * Repeats a write that the server cannot store, as on a full disk, until the kubelet stops. Returns false when it was given
   * up or refused.
   */
  async #stored(failure: string, write: () => Promise<void>): Promise<boolean> {
    const { clock, logger, stopping } = this.#deps;
    for (let isLogged = false; ; isLogged = true) {
      try {
        await write();
        return true;
      } catch (error) {
        if (!isLogged) logger.warn({ pod: this.#pod.metadata.name, uid: this.uid, err: error }, failure);
        if (error instanceof ApiError || !(await pause(clock, STORE_RETRY_MS, stopping))) return false;
      }
    }
  }

  /** Reads the object again after a refused write. Rethrows errors other than a conflict or a missing object. */
  async #reread(error: unknown): Promise<void> {
    if (!isConflict(error) && !isNotFound(error)) throw error;
    const { namespace, name } = this.#pod.metadata;
    try {
      const now = await this.#deps.store.get(pods, { namespace, name });
      if (now.metadata.uid === this.uid) this.#pod = now;
      else this.#removed = true;
    } catch (gone) {
      if (!isNotFound(gone)) throw gone;
      this.#removed = true;
    }
  }

  /**
   * Deletes the object once no process is left. Containers that were never created are reported as ended before, as a kubelet
   * does (pkg/kubelet/status: TerminatePod).
   */
  async #delete(): Promise<void> {
    for (const { view } of this.loops.filter(({ view }) => view.state.waiting && !view.lastState.terminated)) {
      const message = 'The container could not be located when the pod was terminated';
      view.state = { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown', message } };
      this.#publish();
    }
    await this.#flush();
    if (this.#removed) return;
    const { namespace, name } = this.#pod.metadata;
    await this.#stored('ended pod not deleted', async () => {
      try {
        await this.#deps.store.delete(pods, { namespace, name }, { uid: this.uid, gracePeriodSeconds: 0 });
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      }
    });
  }
}
