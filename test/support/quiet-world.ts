import type { Bind } from '../../core/frames/messages.ts';
import { pods } from '../../core/kube/resources.ts';
import {
  ownedBy,
  type StoredSession,
  type StoredTurn,
  sessionclasses,
  sessions,
  turns,
} from '../../core/resources/kinds.ts';
import type { SessionPhase } from '../../core/resources/session.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { type FaultRates, NO_FAULTS } from '../sim/api/faults.ts';
import { SimServer } from '../sim/api/server.ts';
import type { Plan } from '../sim/cluster/agent.ts';
import { Replica } from '../sim/cluster/controllers.ts';
import { Kubelets, NO_POD_FAULTS } from '../sim/cluster/kubelets.ts';
import type { ControllerCall, Observer } from '../sim/observer.ts';
import { Dice } from '../sim/random.ts';
import { Scheduler } from '../sim/scheduler.ts';
import { Trace } from '../sim/trace.ts';
import { create, edit } from '../sim/users/writes.ts';

const NAMESPACE = 'team';

export interface QuietWorldOptions {
  garbageSeconds?: number;
  rates?: () => FaultRates;
  /** Probability that a step of a pod's life takes several times as long; absent: 0. */
  slowPods?: () => number;
  /** Absent: no limit. */
  maxRunning?: number;
  /** Asked at each start of the controller whether it keeps pools; absent: no. */
  sessionPools?: () => boolean;
  /** Namespaces that the controller serves; absent: all. */
  namespaces?: readonly string[];
  /** Bytes of the store; absent: more than any test needs. */
  storeCeilingBytes?: number;
}

/**
 * The simulator's cluster with one controller and no faults. It shows the controller's API calls in normal operation.
 */
export class QuietWorld {
  readonly server: SimServer;
  readonly replica: Replica;
  /** Calls of the controller so far, "verb resource", without its lease and its events. */
  calls: string[] = [];
  /** Bindings that a runner has accepted. */
  readonly bindings: Bind[] = [];
  /** Messages and fields that the controller has logged. */
  readonly logged: { message: string; fields: Record<string, unknown> }[] = [];
  /** Error that a call of the controller rejects with, before it is sent. */
  refuse: (call: ControllerCall) => Error | undefined = () => undefined;
  /** Error that a call of the controller rejects with after it has taken effect. */
  lose: (call: ControllerCall) => Error | undefined = () => undefined;
  /** Highest number of its concurrent calls, by "verb resource". */
  readonly mostAtOnce = new Map<string, number>();
  readonly #underWay = new Map<string, number>();
  readonly #scheduler: Scheduler;
  readonly #kubelets: Kubelets;

  constructor({
    garbageSeconds = 600,
    rates = () => NO_FAULTS,
    slowPods = () => 0,
    maxRunning,
    sessionPools = () => false,
    namespaces,
    storeCeilingBytes = 100_000_000,
  }: QuietWorldOptions = {}) {
    const dice = new Dice(1, 'quiet');
    const trace: Trace = new Trace({ time: () => this.#scheduler.now });
    this.#scheduler = new Scheduler(dice.stream('scheduler'), trace);
    this.server = new SimServer(this.#scheduler, dice.stream('server'));
    const ignored = () => {};
    const observer: Observer = {
      controllerStarted: ignored,
      suspensionFailed: ignored,
      attached: ignored,
      detached: ignored,
      sent: (call) => {
        const error = this.refuse(call);
        if (error) throw error;
        this.#count(call, 1);
      },
      called: (call) => this.#called(call),
      answered: (call, error) => {
        const lost = error ? undefined : this.lose(call);
        if (lost) throw lost;
        this.#count(call, -1);
      },
      heard: ignored,
      committed: ignored,
      bound: (bind) => this.bindings.push(bind),
      runStarted: ignored,
      runEnded: ignored,
      acknowledged: ignored,
      gaveUp: ignored,
      obeyed: ignored,
      told: ignored,
      touched: ignored,
      talked: ignored,
      clientsWorked: ignored,
      packed: ignored,
      followerTold: ignored,
      calmed: ignored,
    };
    const shared = { scheduler: this.#scheduler, server: this.server, trace, observer };
    this.#kubelets = new Kubelets({
      ...shared,
      dice: dice.stream('kubelets'),
      rates: () => ({ ...NO_POD_FAULTS, slow: slowPods() }),
    });
    this.replica = new Replica('controller', {
      ...shared,
      kubelets: this.#kubelets,
      dice: dice.stream('controller'),
      rates,
      installation: {
        namespace: 'berth',
        keys: 'berth-master-key',
        maxRunning,
        storeCeilingBytes,
        attachLingerSeconds: 60,
        attachesPerNode: 16,
        workers: 32,
        nodeGraceSeconds: 60,
        garbageSeconds,
        agentFiles: false,
        ...(namespaces ? { namespaces } : {}),
        get sessionPools() {
          return sessionPools();
        },
      },
      onLog: (message, fields) => this.logged.push({ message, fields: fields as Record<string, unknown> }),
      onFault: (message) => {
        throw new Error(message);
      },
    });
  }

  /** Starts a leader, and creates the class "default". */
  async start(): Promise<void> {
    await this.furnish();
    this.replica.start();
    await this.until('leading', () => this.replica.isLeading);
  }

  async furnish(): Promise<void> {
    for (const name of ['berth', NAMESPACE]) await this.server.namespace(name);
    const spec = { agent: { command: ['agent'] }, overrides: ['timeouts', 'persistence', 'history'] };
    await create(this.server, sessionclasses, undefined, 'default', spec);
    await this.#kubelets.nodes.furnish();
  }

  /** Creates a session and resolves with it once it stays in the phase. */
  async session(name: string, spec: object = {}, phase: SessionPhase = 'Ready'): Promise<StoredSession> {
    await create(this.server, sessions, NAMESPACE, name, { class: 'default', ...spec });
    return this.sessionUntil(name, ({ status }) => status?.phase === phase);
  }

  async edit(session: string, spec: object): Promise<void> {
    await edit(this.server, sessions, this.#session(session), spec);
  }

  async sessionUntil(name: string, check: (session: StoredSession) => boolean): Promise<StoredSession> {
    await this.until(`session ${name}`, () => check(this.#session(name)));
    return this.#session(name);
  }

  /** Creates a turn as the HTTP API does, and resolves with it once it has ended. */
  async turn(session: StoredSession, name: string, input: Plan): Promise<StoredTurn> {
    await this.give(name, input, session.metadata.name, { ownerReferences: [ownedBy(session)] });
    const look = () => this.server.get(turns, NAMESPACE, name) as StoredTurn;
    await this.until(`turn ${name}`, () => isTerminal(look().status?.phase));
    return look();
  }

  async give(name: string, input: Plan, session: string, metadata: object = {}): Promise<void> {
    const turn = { metadata: { namespace: NAMESPACE, name, ...metadata }, spec: { session, input, cancel: false } };
    await this.server.admin.create(turns, { apiVersion: 'berth.dev/v1alpha1', kind: 'Turn', ...turn });
  }

  /** Advances virtual time. */
  async pass(ms: number): Promise<void> {
    await this.#scheduler.run(() => false, this.#scheduler.now + ms);
  }

  /** Advances every wall clock and no monotonic one, as if all machines had slept; the machines of runners keep theirs. */
  sleep(ms: number): void {
    this.server.clock.skewMs += ms;
    this.replica.skewMs += ms;
    if (this.replica.process) this.replica.process.skewMs += ms;
  }

  /** Name of the node of the session's pod. */
  nodeOf({ status }: StoredSession): string | undefined {
    return this.server.get(pods, NAMESPACE, status?.podName as string)?.spec.nodeName;
  }

  /** Keeps the runner of the session's pod from doing anything for a while. */
  freeze({ status }: StoredSession, ms: number): void {
    this.#kubelets.container(status?.podUID ?? '')?.process.pause(ms);
  }

  async until(what: string, check: () => boolean): Promise<void> {
    const limit = this.#scheduler.now + 120_000;
    if ((await this.#scheduler.run(check, limit)) !== 'Done') throw new Error(`waited in vain for ${what}`);
  }

  #session(name: string): StoredSession {
    return this.server.get(sessions, NAMESPACE, name) as StoredSession;
  }

  #count({ verb, resource }: ControllerCall, by: number): void {
    const what = `${verb} ${resource}`;
    const now = (this.#underWay.get(what) ?? 0) + by;
    this.#underWay.set(what, now);
    this.mostAtOnce.set(what, Math.max(now, this.mostAtOnce.get(what) ?? 0));
  }

  #called({ verb, resource }: ControllerCall): void {
    if (resource !== 'leases' && resource !== 'events') this.calls.push(`${verb} ${resource}`);
  }
}
