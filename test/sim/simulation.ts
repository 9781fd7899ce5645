import type { Pod } from '../../core/kube/builtin.ts';
import { pods } from '../../core/kube/resources.ts';
import { environments, sessionclasses, sessions, turns } from '../../core/resources/kinds.ts';
import { drawRates, type FaultRates, NO_FAULTS } from './api/faults.ts';
import { SimServer } from './api/server.ts';
import { Chaos } from './chaos.ts';
import { type Installation, Replica } from './cluster/controllers.ts';
import { impostors } from './cluster/impostors.ts';
import type { PodRates } from './cluster/kubelet-options.ts';
import { Kubelets, NO_POD_FAULTS } from './cluster/kubelets.ts';
import { Releases } from './cluster/releases.ts';
import type { Focus } from './focus.ts';
import { Facts } from './invariants/facts.ts';
import { LATE_MS } from './invariants/followers.ts';
import { FOREIGN } from './invariants/foreign.ts';
import { invariants } from './invariants/index.ts';
import { unsettled } from './invariants/settled.ts';
import type { Observer } from './observer.ts';
import { Dice } from './random.ts';
import { Scheduler } from './scheduler.ts';
import { Trace } from './trace.ts';
import { Ages } from './users/ages.ts';
import { EnvironmentOwners } from './users/environments.ts';
import { FileOwners } from './users/files.ts';
import { Followers } from './users/followers.ts';
import { PoolOwners } from './users/pools.ts';
import { Regroupers } from './users/regroupers.ts';
import { Remakers } from './users/remakers.ts';
import { Restarters } from './users/restarts.ts';
import { Administrators } from './users/rights.ts';
import { someLimits } from './users/specs.ts';
import { ANY_IMAGE, CLASSES, NAMESPACES, type Users } from './users/users.ts';
import { Visitors } from './users/visitors.ts';
import { Workload } from './users/workload.ts';
import { create } from './users/writes.ts';

/** Fields that classes let sessions override. */
const overrides = [
  'timeouts',
  'agent.command',
  'persistence',
  'priority',
  'history',
  'ttlAfterFinished',
  'ttlAfterSuspended',
];

/**
 * Time limit for settling after the last fault; virtual milliseconds. A turn waits ten minutes for a session that does
 * not exist, and a failed suspension is retried after as much. One may have to wait for the other.
 */
const SETTLE_MS = 25 * 60_000;
const CHECK_MS = 2000;
/** Store ceiling that no world comes near. */
const MUCH_ROOM = 100_000_000;

export interface Outcome {
  seed: number;
  /** The violated invariant with its message; undefined when all held. */
  failure: string | undefined;
  /** Virtual milliseconds. */
  at: number;
  steps: number;
  commits: number;
  turns: number;
  /** Digest of the trace, when requested. */
  digest: string | undefined;
}

export interface SimulationOptions {
  seed: number;
  print?: (line: string) => void;
  digest?: boolean;
  focus?: Focus;
}

/** A world, from its first moment until everything has settled or an invariant is violated. */
export class Simulation {
  readonly #options: SimulationOptions;
  readonly #dice: Dice;
  readonly #trace: Trace;
  readonly #scheduler: Scheduler;
  readonly #server: SimServer;
  readonly #kubelets: Kubelets;
  readonly #replicas: Replica[];
  readonly #facts: Facts;
  readonly #observer: Observer & { settled(): void };
  readonly #installation: Installation;
  readonly #hasEnvironments: boolean;
  /** Classes require that runners are hardened, and some are not. */
  readonly #hasProtections: boolean;
  #rates: FaultRates;
  #podRates: PodRates;
  #failure: string | undefined;
  #commits = 0;

  constructor(options: SimulationOptions) {
    const { seed, print, digest = false, focus = {} } = options;
    this.#options = options;
    const dice = new Dice(seed, 'world');
    this.#dice = dice;
    this.#trace = new Trace({ time: () => this.#scheduler?.now ?? 0, print, digest });
    this.#scheduler = new Scheduler(dice.stream('scheduler'), this.#trace);
    this.#scheduler.onSpin = (what) => this.fail(`goes on in time: ${what}`);
    this.#server = new SimServer(this.#scheduler, dice.stream('server'));
    const agentFiles = focus.files ?? new Dice(seed, 'has files').chance(0.2);
    this.#hasEnvironments = focus.environments ?? new Dice(seed, 'has environments').chance(0.2);
    // A pod that a pool made while some runners were not hardened would still be there when all are.
    const hasProtections = !this.#hasEnvironments && !focus.pools && new Dice(seed, 'has protections').chance(0.15);
    this.#hasProtections = focus.protections ?? hasProtections;
    const sessionPools = focus.pools ?? (!this.#hasProtections && new Dice(seed, 'has pools').chance(0.2));
    const attachLingerSeconds = focus.attachLingerSeconds ?? new Dice(seed, 'attach linger').pick([1, 10, 60]);
    const attachesPerNode = focus.attachesPerNode ?? new Dice(seed, 'attaches per node').pick([1, 2, 16]);
    this.#installation = {
      ...drawInstallation(dice),
      ...installationOf(focus),
      agentFiles,
      sessionPools,
      attachLingerSeconds,
      attachesPerNode,
    };
    this.#rates = { ...drawRates(dice), ...focus.rates };
    const open = this.#hasProtections ? 0.3 : 0;
    const hostile = new Dice(seed, 'has hostile pods').chance(0.2) ? 0.3 : 0;
    const garbling = new Dice(seed, 'has garbled texts');
    const garbled = (focus.garbled ?? garbling.chance(0.2)) ? garbling.pick([0.03, 0.3]) : 0;
    this.#podRates = { ...drawPodRates(dice), open, hostile, garbled, ...focus.podRates };
    const shared = { scheduler: this.#scheduler, server: this.#server, trace: this.#trace };
    const told: Observer = {
      controllerStarted: (...facts) => this.#observer.controllerStarted(...facts),
      suspensionFailed: (session) => this.#observer.suspensionFailed(session),
      sent: (call) => this.#observer.sent(call),
      called: (call) => this.#observer.called(call),
      answered: (...facts) => this.#observer.answered(...facts),
      committed: (change) => this.#observer.committed(change),
      bound: (...facts) => this.#observer.bound(...facts),
      attached: (...facts) => this.#observer.attached(...facts),
      detached: (...facts) => this.#observer.detached(...facts),
      heard: (...facts) => this.#observer.heard(...facts),
      runStarted: (...facts) => this.#observer.runStarted(...facts),
      runEnded: (...facts) => this.#observer.runEnded(...facts),
      acknowledged: (...facts) => this.#observer.acknowledged(...facts),
      gaveUp: (claim) => this.#observer.gaveUp(claim),
      obeyed: (...facts) => this.#observer.obeyed(...facts),
      told: (...facts) => this.#observer.told(...facts),
      talked: (run) => this.#observer.talked(run),
      touched: (session) => this.#observer.touched(session),
      clientsWorked: (...facts) => this.#observer.clientsWorked(...facts),
      packed: (...facts) => this.#observer.packed(...facts),
      followerTold: (...facts) => this.#observer.followerTold(...facts),
      calmed: () => this.#observer.calmed(),
    };
    this.#kubelets = new Kubelets({
      ...shared,
      dice: dice.stream('kubelets'),
      rates: () => this.#podRates,
      observer: told,
    });
    this.#facts = new Facts(this.#server, this.#kubelets, this.#installation, (failure) => this.fail(failure));
    this.#observer = invariants(this.#facts, this.#installation);
    this.#server.onCommit((change) => {
      this.#commits++;
      const { metadata, status } = change.object;
      this.#trace.line(() => [
        'commit',
        change.type,
        `${change.storage.split('.')[0]}/${metadata.name}`,
        `v${change.version}`,
        (status as { phase?: string } | undefined)?.phase ?? '',
      ]);
      this.#trace.object(change.object);
      told.committed(change);
    });
    this.#replicas = ['ctl-0', 'ctl-1'].map(
      (name) =>
        new Replica(name, {
          ...shared,
          kubelets: this.#kubelets,
          dice: dice.stream(name),
          rates: () => this.#rates,
          installation: this.#installation,
          observer: told,
          onFault: (message) => this.fail(message),
        }),
    );
  }

  fail(failure: string): void {
    if (this.#failure) return;
    this.#failure = failure;
    this.#trace.line(() => ['VIOLATED', failure]);
  }

  async run(): Promise<Outcome> {
    const dice = this.#dice;
    const { scheduler, server, kubelets, trace } = this.#parts();
    await this.#furnish();
    for (const replica of this.#replicas) {
      replica.skewMs = dice.int(-2000, 2000);
      scheduler.after(dice.skewed(1, 3000), undefined, `start ${replica.name}`, () => replica.start());
    }
    const { focus = {} } = this.#options;
    const files = this.#installation.agentFiles ? dice.stream('files') : undefined;
    const ofEnvironments = this.#hasEnvironments ? dice.stream('environments') : undefined;
    const hasRestarts = focus.restarts ?? new Dice(this.#options.seed, 'has restarts').chance(0.3);
    const restarts = hasRestarts ? dice.stream('restarts') : undefined;
    const moves = focus.groups ?? new Dice(this.#options.seed, 'has moves').chance(0.2);
    const regrouping = moves ? dice.stream('moves') : undefined;
    const pools = this.#installation.sessionPools ? dice.stream('pools') : undefined;
    const has = (feature: 'sharing' | 'writing' | 'remakes' | 'ages' | 'rights' | 'visitors') =>
      (focus[feature] ?? new Dice(this.#options.seed, `has ${feature}`).chance(0.2)) ? dice.stream(feature) : undefined;
    const [remakes, ages, rights, visits] = [has('remakes'), has('ages'), has('rights'), has('visitors')];
    if (rights) this.#installation.namespaces = NAMESPACES;
    const users: Users = {
      scheduler,
      server,
      trace,
      dice: dice.stream('users'),
      maxSessions: dice.int(1, 8),
      groupLimit: dice.int(1, 2),
      session: focus.session ?? {},
      files: files?.stream('sessions'),
      environments: ofEnvironments?.stream('sessions'),
      sharing: has('sharing'),
      writing: has('writing'),
      artifacts: new Dice(this.#options.seed, 'artifacts'),
      onlyAnyImage: focus.onlyAnyImage ?? false,
    };
    const workload = new Workload(users, focus.deedEveryMs ?? dice.skewed(400, 3000), focus.deeds);
    const stage = { scheduler, server, kubelets, trace, dice: dice.stream('chaos'), replicas: this.#replicas };
    const owners = [
      files && new FileOwners({ scheduler, server, trace, dice: files }),
      ofEnvironments && new EnvironmentOwners({ scheduler, server, trace, dice: ofEnvironments }),
      regrouping && new Regroupers({ scheduler, server, trace, dice: regrouping }),
      restarts && new Restarters({ scheduler, server, trace, dice: restarts }),
      remakes && new Remakers({ scheduler, server, trace, dice: remakes, users }),
      pools && new PoolOwners({ scheduler, server, trace, dice: pools }, focus.poolEveryMs),
      rights && new Administrators({ scheduler, server, trace, dice: rights }),
      ages && new Ages({ ...stage, dice: ages }),
      visits && new Visitors({ scheduler, server, kubelets, trace, dice: visits }),
    ];
    const everyMs = dice.chance(0.2) ? Number.POSITIVE_INFINITY : dice.skewed(1500, 30_000);
    const chaos = new Chaos(stage, focus.misfortuneEveryMs ?? everyMs, focus.misfortunes);

    const hasReleases = focus.releases ?? new Dice(this.#options.seed, 'has releases').chance(0.2);
    const releases = hasReleases
      ? new Releases({ scheduler, trace, dice: dice.stream('releases'), replicas: this.#replicas })
      : undefined;

    const hasFollowers = focus.followers ?? new Dice(this.#options.seed, 'has followers').chance(0.2);
    const followers = hasFollowers ? this.#followers() : undefined;
    const drawnMs = dice.skewed(15_000, 120_000);
    const faultyMs = focus.faultyMs ?? drawnMs;
    await scheduler.run(() => this.#failure !== undefined, faultyMs);
    trace.line(() => ['world', 'FAULTS END']);
    this.#rates = NO_FAULTS;
    this.#podRates = NO_POD_FAULTS;
    chaos.end();
    this.#observer.calmed();
    followers?.calm();
    workload.end();
    releases?.end();
    for (const owner of owners) owner?.end();
    await this.#settle('faults ended');
    await this.#makeRoom();
    await this.#probe(users);
    if (followers) await this.#tellAll();
    if (!this.#failure) this.#observer.settled();
    if (this.#failure) this.#show();
    return {
      seed: this.#options.seed,
      failure: this.#failure,
      at: scheduler.now,
      steps: scheduler.steps,
      commits: this.#commits,
      turns: this.#facts.turns.size,
      digest: this.#options.digest ? trace.digest() : undefined,
    };
  }

  #followers(): Followers {
    const { scheduler, server, kubelets, trace } = this.#parts();
    const dice = new Dice(this.#options.seed, 'followers');
    impostors({ scheduler, server, dice: dice.stream('impostors') });
    return new Followers({
      ...{ scheduler, server, kubelets, trace, dice },
      rates: () => this.#rates,
      observer: this.#observer,
      onFault: (message) => this.fail(message),
    });
  }

  /** Waits until those who follow sessions have been told what has happened. */
  async #tellAll(): Promise<void> {
    if (this.#failure) return;
    const { scheduler } = this.#parts();
    await scheduler.run(() => this.#failure !== undefined, scheduler.now + LATE_MS);
  }

  /** Waits until the world comes to rest; fails when it does not. */
  async #settle(since: string): Promise<void> {
    const { scheduler, trace } = this.#parts();
    const limit = scheduler.now + SETTLE_MS;
    let nextCheck = scheduler.now;
    let rest = false;
    const done = () => {
      if (this.#failure !== undefined || rest) return true;
      if (scheduler.now < nextCheck) return false;
      nextCheck = scheduler.now + CHECK_MS;
      const left = unsettled(this.#facts);
      trace.line(() => ['world', left.length === 0 ? 'at rest' : `still: ${left.join('; ')}`]);
      rest = left.length === 0;
      return rest;
    };
    await scheduler.run(done, limit);
    if (this.#failure || rest) return;
    this.fail(`settles: ${SETTLE_MS / 60_000} min after ${since} ${unsettled(this.#facts).join('; ')}`);
  }

  /**
   * Raises the store's ceiling and restarts the controllers, as the message of a full store advises, and waits until
   * environments that found no room may be built again.
   */
  async #makeRoom(): Promise<void> {
    if (this.#failure || this.#installation.storeCeilingBytes >= MUCH_ROOM) return;
    this.#installation.storeCeilingBytes = MUCH_ROOM;
    for (const replica of this.#replicas) replica.stop();
    const { scheduler, server } = this.#parts();
    const retries = server.list(environments).map(({ status }) => Date.parse(status?.retryAt ?? ''));
    const waitMs = Math.max(0, ...retries.filter(Number.isFinite)) - server.clock.now();
    if (waitMs <= 0) return;
    // Replicas measure the time by answers, which say it to the second.
    await scheduler.run(() => this.#failure !== undefined, scheduler.now + waitMs + 2000);
  }

  /** Checks that every session still works: one more turn for each has to succeed. */
  async #probe({ server }: Users): Promise<void> {
    if (this.#failure) return;
    for (const { metadata, spec } of server.list(sessions)) {
      if (spec.turns === 'One' || spec.timeouts?.lifetime) continue;
      const turn = { session: metadata.name, input: { ms: 100, output: 10, state: 100 } };
      await create(server, turns, metadata.namespace, `probe-${metadata.name}`, turn);
    }
    await this.#settle('the last turns were given');
    if (this.#failure) return;
    for (const { metadata, status } of server.list(turns)) {
      if (metadata.name.startsWith('probe-') && status?.phase !== 'Succeeded')
        this.fail(
          `works: turn ${metadata.name} of a session at rest ended ${status?.phase}: ${status?.error?.message}`,
        );
    }
  }

  async #furnish(): Promise<void> {
    const server = this.#server;
    for (const namespace of [this.#installation.namespace, ...NAMESPACES]) await server.namespace(namespace);
    for (const name of [...CLASSES, ANY_IMAGE]) {
      const drawn = this.#dice.chance(0.5) ? someLimits(this.#dice) : {};
      const limits = { ...drawn, ...this.#options.focus?.sessionClass };
      const runnerless = name === ANY_IMAGE ? { runner: 'None', image: 'any' } : {};
      const ofFiles = this.#installation.agentFiles && name !== ANY_IMAGE ? ['agent.files'] : [];
      const ofEnvironments = this.#hasEnvironments && name !== ANY_IMAGE ? ['environment'] : [];
      const sandbox = { require: ['RunnerHardened'] };
      const spec = {
        ...(this.#hasProtections && name !== ANY_IMAGE ? { sandbox } : {}),
        agent: { command: ['agent'] },
        overrides: [...overrides, ...ofFiles, ...ofEnvironments],
        ...runnerless,
        ...limits,
      };
      await create(server, sessionclasses, undefined, name, spec);
    }
    await this.#kubelets.nodes.furnish();
    const labels = { [FOREIGN]: 'yes', 'app.kubernetes.io/managed-by': 'berth' };
    const foreign: Pod = {
      metadata: { name: 'bystander', namespace: NAMESPACES[0], labels },
      spec: { containers: [{ name: 'main', image: 'other' }] },
    };
    await server.admin.create(pods, foreign);
  }

  /** Prints the objects left at the end, for the search for a failure's reason. */
  #show(): void {
    for (const kind of [sessions, turns, pods] as const) {
      for (const { metadata, spec, status } of this.#server.list(kind as typeof sessions)) {
        const { name, uid, labels, deletionTimestamp } = metadata;
        const facts = JSON.stringify({ uid, labels, deletionTimestamp, spec, status });
        this.#trace.line(() => ['left', kind.kind, name, facts.slice(0, 2000)]);
      }
    }
  }

  #parts() {
    return { scheduler: this.#scheduler, server: this.#server, kubelets: this.#kubelets, trace: this.#trace };
  }
}

/** Settings that are drawn with dice of their own. */
type NotDrawnHere = 'agentFiles' | 'sessionPools' | 'attachLingerSeconds' | 'attachesPerNode';

function drawInstallation(dice: Dice): Omit<Installation, NotDrawnHere> {
  return {
    namespace: 'berth',
    keys: 'berth-master-key',
    maxRunning: dice.chance(0.7) ? dice.int(1, 4) : undefined,
    storeCeilingBytes: dice.chance(0.2) ? dice.int(10_000, 200_000) : MUCH_ROOM,
    workers: dice.pick([1, 4, 32]),
    nodeGraceSeconds: dice.int(5, 60),
    garbageSeconds: dice.int(2, 30),
  };
}

function installationOf({ maxRunning, nodeGraceSeconds, storeCeilingBytes }: Focus): Partial<Installation> {
  return {
    ...(nodeGraceSeconds === undefined ? {} : { nodeGraceSeconds }),
    ...(maxRunning === undefined ? {} : { maxRunning }),
    ...(storeCeilingBytes === undefined ? {} : { storeCeilingBytes }),
  };
}

function drawPodRates(dice: Dice): PodRates {
  const rate = (most: number) => (dice.chance(0.4) ? most * dice.uniform() ** 2 : 0);
  return {
    unschedulable: rate(0.5),
    image: rate(0.3),
    slow: rate(0.3),
    crash: rate(0.2),
    breaks: rate(0.1),
    logLost: rate(1),
    open: 0,
    hostile: 0,
    garbled: 0,
  };
}
