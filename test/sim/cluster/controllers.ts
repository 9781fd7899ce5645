import { controllerConfig } from '../../../controller/config.ts';
import { Controller } from '../../../controller/controller.ts';
import { nothingKept } from '../../../controller/link/pod-counters.ts';
import type { Meter } from '../../../controller/meter.ts';
import { noneRefused } from '../../../core/frames/decode.ts';
import { PROTOCOL_VERSION } from '../../../core/frames/messages.ts';
import { pods } from '../../../core/kube/resources.ts';
import { type AnswerTime, ServerClock } from '../../../core/kube/server-clock.ts';
import type { Logger } from '../../../core/runtime.ts';
import { SimApi } from '../api/client.ts';
import type { Call, FaultRates } from '../api/faults.ts';
import type { SimServer } from '../api/server.ts';
import type { Observer } from '../observer.ts';
import type { Dice } from '../random.ts';
import { Process, type Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';
import type { Kubelets } from './kubelets.ts';
import { runnerImage } from './runner-image.ts';

export interface Installation {
  namespace: string;
  keys: string;
  maxRunning: number | undefined;
  storeCeilingBytes: number;
  workers: number;
  nodeGraceSeconds: number;
  garbageSeconds: number;
  attachLingerSeconds: number;
  /** Attaches to the pods of one node that a controller opens at once. */
  attachesPerNode: number;
  /** True when the controller reads ConfigMaps with agents' files. */
  agentFiles: boolean;
  /** True when the controller keeps pods of SessionPools. */
  sessionPools: boolean;
  /** Namespaces that the controller serves; absent: all. */
  namespaces?: readonly string[];
}

export interface ControllersOptions {
  scheduler: Scheduler;
  server: SimServer;
  kubelets: Kubelets;
  dice: Dice;
  rates: () => FaultRates;
  trace: Trace;
  installation: Installation;
  observer: Observer;
  /** Called with each log entry of a controller. */
  onLog?(message: string, fields: object): void;
  /** Called when the controller logs a failure of its own code. */
  onFault(message: string): void;
}

/** Log messages that mean a failure of the program itself, whatever the world does. */
const FAULTS = /^(handler of an informer|function of an informer|callback of the leader election) failed/;

/** Fields of the log entry about a deleted pod. */
interface GivenUp {
  pod: string;
  session: string;
  why: string;
  namespace?: string | undefined;
}

/** A replica of the controller. Each start is a new process. */
export class Replica {
  readonly name: string;
  process: Process | undefined;
  skewMs = 0;
  /** Protocol version of the release that the next start runs. */
  protocol: number = PROTOCOL_VERSION;
  /** Protocol version of the process. */
  #running: number = PROTOCOL_VERSION;
  readonly #options: ControllersOptions;
  #controller: Controller | undefined;
  #starts = 0;
  /** Call at which the process is to be killed. */
  #pods = 1;
  #crash: { calls: number; when: 'before' | 'after' } | undefined;

  constructor(name: string, options: ControllersOptions) {
    this.name = name;
    this.#options = options;
  }

  /** True while the process is not of the release that is installed. */
  get isOfAnotherRelease(): boolean {
    return this.process?.alive === true && this.#running !== this.protocol;
  }

  get isLeading(): boolean {
    return this.process?.alive === true && this.#controller?.isLeading === true;
  }

  /** Problem for which the controller says that it is not ready; undefined: there is none. */
  get problem(): string | undefined {
    return this.#controller?.problem;
  }

  start(): void {
    if (this.process?.alive) return;
    const { scheduler, server, kubelets, dice, rates, trace, installation, observer } = this.#options;
    const name = `${this.name}.${++this.#starts}`;
    const process = new Process(name, scheduler);
    process.skewMs = this.skewMs;
    const own = dice.stream(name);
    const crashes = (when: 'before' | 'after', call: Call) => this.#crashesAt(process, when, call);
    // The container is restarted in its pod, or another pod replaces it.
    if (own.stream('pod').chance(0.4)) this.#pods++;
    this.process = process;
    this.#running = this.protocol;
    this.#crash = undefined;
    const log = this.#logger(name);
    const clock = new ServerClock(process, log);
    const onAnswer = (time: AnswerTime) => clock.answered(time);
    const surroundings = { process, scheduler, server, kubelets, dice: own, rates, trace, crashes, observer };
    const api = new SimApi({ ...surroundings, onAnswer });
    const controller = new Controller({
      api,
      leaseApi: api,
      config: controllerConfig.parse({
        BERTH_RUNNER_IMAGE: runnerImage(this.protocol),
        BERTH_MASTER_KEY_SECRET: installation.keys,
        BERTH_STORE_CEILING_BYTES: installation.storeCeilingBytes,
        BERTH_WORKERS: installation.workers,
        BERTH_NODE_GRACE: `${installation.nodeGraceSeconds}s`,
        BERTH_GARBAGE_INTERVAL: `${installation.garbageSeconds}s`,
        BERTH_ATTACH_LINGER: `${installation.attachLingerSeconds}s`,
        BERTH_POD_UID: `${this.name}-pod-${this.#pods}`,
        BERTH_AGENT_FILES: String(installation.agentFiles),
        BERTH_SESSION_POOLS: String(installation.sessionPools),
        ...(installation.namespaces ? { BERTH_NAMESPACES: installation.namespaces.join(',') } : {}),
        ...(installation.maxRunning === undefined ? {} : { BERTH_MAX_RUNNING: installation.maxRunning }),
      }),
      namespace: installation.namespace,
      holder: this.name,
      clock,
      ownTime: () => process.now(),
      random: own.stream('random'),
      log,
      meter: hashedMeter(name, trace),
      protocol: this.protocol,
      attachesPerNode: installation.attachesPerNode,
    });
    this.#controller = controller;
    trace.line(() => [name, 'starts', `protocol ${this.protocol}`]);
    observer.controllerStarted(name, this.protocol);
    controller.start().catch((error: Error) => trace.line(() => [name, 'start failed:', error.message]));
  }

  /** Kills the process at its `calls`th call from now, before the call is sent or after it is carried out. */
  crashAt(calls: number, when: 'before' | 'after'): void {
    this.#crash = { calls, when };
  }

  kill(): void {
    if (!this.process?.alive) return;
    this.#options.trace.line(() => [this.process?.name ?? '', 'IS KILLED']);
    this.process.kill();
  }

  /** Sends SIGTERM: the controller releases the lease, then its process ends. */
  stop(): void {
    const { process } = this;
    if (!process?.alive) return;
    const end = () => process.after(0.1, 'exits', () => process.kill());
    process.after(9000, 'gives up', () => process.kill());
    this.#controller?.stop().then(end, end);
  }

  #crashesAt(process: Process, when: 'before' | 'after', { verb, resource }: Call): boolean {
    const crash = this.#crash;
    if (!crash || process !== this.process || when !== crash.when || --crash.calls > 0) return false;
    this.#options.trace.line(() => [process.name, `IS KILLED ${when} ${verb} ${resource}`]);
    this.#crash = undefined;
    process.kill();
    return true;
  }

  #gaveUp(process: string, { pod, session, why, namespace = session.split('/')[0] }: GivenUp): void {
    const { server, observer } = this.#options;
    const podUID = server.get(pods, namespace, pod)?.metadata.uid;
    if (podUID) observer.gaveUp({ process, podUID, why, session });
  }

  #logger(name: string): Logger {
    const { trace, onFault, onLog, observer } = this.#options;
    const write = (level: string) => (fields: object, message: string) => {
      trace.log(() => [name, level, message, words(fields)]);
      onLog?.(message, fields);
      if (message === 'turn committed') trace.object({ process: name, message, ...fields });
      if (message === 'pod deleted') this.#gaveUp(name, fields as GivenUp);
      if (message === 'pool pod deleted') this.#gaveUp(name, { ...(fields as Omit<GivenUp, 'session'>), session: '' });
      if (message === 'suspension aborted') observer.suspensionFailed((fields as { session: string }).session);
      if (FAULTS.test(message)) onFault(`${name}: ${message}: ${words(fields)}`);
    };
    const logger: Logger = {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('ERROR'),
      child: () => logger,
    };
    return logger;
  }
}

/** Receives the measurements of one process for the trace's digest. */
function hashedMeter(process: string, trace: Trace): Meter {
  return {
    turnEnded: ({ metadata: { uid } }, sessionClass) => trace.object({ process, ended: uid, sessionClass }),
    reconciled: (result, seconds) => trace.object({ process, reconciled: result, seconds }),
    claimed: (seconds) => trace.object({ process, claimed: seconds }),
    refused: noneRefused(),
    pods: nothingKept(),
  };
}

function words(fields: object): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${value instanceof Error ? value.message : JSON.stringify(value)}`)
    .join(' ');
}
