import { leases, secrets } from '../../core/kube/resources.ts';
import type { SimServer } from './api/server.ts';
import type { Replica } from './cluster/controllers.ts';
import type { Kubelets } from './cluster/kubelets.ts';
import type { Dice } from './random.ts';
import type { Scheduler } from './scheduler.ts';
import type { Trace } from './trace.ts';

export interface Stage {
  scheduler: Scheduler;
  dice: Dice;
  server: SimServer;
  kubelets: Kubelets;
  replicas: readonly Replica[];
  trace: Trace;
}

/** A failure beyond single calls. `weight` is its relative frequency; with 0 it strikes only in worlds that name it. */
interface Misfortune {
  name: string;
  weight: number;
  strike(stage: Stage): void;
}

const LEASE_MS = 15_000;

/** Advances every wall clock by `ms` and no monotonic one, as if all machines had been suspended. */
export function pass(
  ms: number,
  { server, replicas, kubelets }: Pick<Stage, 'server' | 'replicas' | 'kubelets'>,
): void {
  server.clock.skewMs += ms;
  for (const replica of replicas) {
    replica.skewMs += ms;
    if (replica.process) replica.process.skewMs += ms;
  }
  for (const { container } of kubelets.running) container.process.skewMs += ms;
}

/** Deletes the lease, holds up the leader's requests for this time, and does something meanwhile to it or to the other. */
function replaceLeader(
  { scheduler, dice, server, replicas }: Stage,
  ms: number,
  meanwhile: (leader: Replica, other: Replica | undefined) => void,
  afterMs = ms * dice.uniform(),
): void {
  const leader = replicas.find(({ isLeading }) => isLeading);
  if (!leader?.process) return;
  server.hold(leader.process.name, ms);
  void server.admin.delete(leases, { namespace: 'berth', name: 'berth-controller' }).catch(() => {});
  scheduler.after(afterMs, undefined, 'the leader is replaced', () =>
    meanwhile(
      leader,
      replicas.find((replica) => replica !== leader),
    ),
  );
}

/**
 * Deletes the lease, and does something to its next holder soon after. The former leader leads for 8 to 10 s more, and its
 * requests, which are held up meanwhile, end with that.
 */
function replaceNext(stage: Stage, then: (next: Replica | undefined) => void): void {
  const { dice } = stage;
  replaceLeader(stage, dice.int(6500, 9500), (_, next) => then(next), dice.int(200, 1200));
}

const misfortunes: readonly Misfortune[] = [
  {
    name: 'a controller is killed at a call',
    weight: 6,
    strike({ dice, replicas }) {
      const replica = dice.pick(replicas.filter(({ isLeading }) => isLeading).concat(replicas));
      replica.crashAt(dice.int(1, 25), dice.pick(['before', 'after']));
    },
  },
  {
    name: 'a controller is killed',
    weight: 1,
    strike: ({ dice, replicas }) => dice.pick(replicas).kill(),
  },
  {
    name: 'a controller is told to stop',
    weight: 1,
    strike: ({ dice, replicas }) => dice.pick(replicas).stop(),
  },
  {
    name: 'a controller is paused, often past its lease',
    weight: 3,
    strike({ dice, replicas }) {
      dice
        .pick(replicas)
        .process?.pause(dice.chance(0.5) ? dice.skewed(100, 5000) : dice.skewed(LEASE_MS, 4 * LEASE_MS));
    },
  },
  {
    // As docs/operations.md has it: each step is done before the next, so no controller meets a key that it does not have.
    name: 'the master key is rotated',
    weight: 0,
    strike({ scheduler, dice, server, replicas }) {
      const id = `${dice.int(1, 1e9)}`;
      const key = Buffer.from(Array.from({ length: 32 }, () => dice.int(0, 255))).toString('base64');
      const change = (data: Record<string, string>) => {
        const secret = server.get(secrets, 'berth', 'berth-master-key');
        if (!secret) return;
        void server.admin.replace(secrets, { ...secret, data: { ...secret.data, ...data } }).catch(() => {});
        for (const replica of replicas) replica.stop();
      };
      change({ [id]: key });
      scheduler.after(dice.int(3000, 10_000), undefined, 'the new master key is made the current one', () =>
        change({ current: Buffer.from(id).toString('base64') }),
      );
    },
  },
  {
    name: 'a clock jumps',
    weight: 1,
    strike({ dice, replicas, kubelets }) {
      const jump = dice.pick([-1, 1]) * dice.skewed(500, 3_600_000);
      const replica = dice.pick(replicas);
      if (dice.chance(0.7)) replica.skewMs += jump;
      if (replica.process) replica.process.skewMs = replica.skewMs;
      for (const { container } of kubelets.running) if (dice.chance(0.1)) container.process.skewMs += jump;
    },
  },
  {
    name: 'the history of the API server is compacted',
    weight: 1,
    strike: ({ server }) => server.store.compact(),
  },
  {
    name: 'a pod is killed',
    weight: 3,
    strike({ dice, kubelets }) {
      const { pod } = dice.pick(kubelets.running) ?? {};
      if (!pod) return;
      if (dice.chance(0.3)) kubelets.evict(pod);
      else kubelets.kill(pod, dice.pick(['OOMKilled', 'Error']));
    },
  },
  {
    name: 'a pod is deleted by somebody',
    weight: 1,
    strike({ dice, kubelets }) {
      const { pod } = dice.pick(kubelets.running) ?? {};
      if (pod) kubelets.deleteBySomebody(pod, dice.chance(0.3));
    },
  },
  {
    name: 'a pod is frozen',
    weight: 1,
    strike({ dice, kubelets }) {
      dice.pick(kubelets.running)?.container.process.pause(dice.skewed(1000, 90_000));
    },
  },
  {
    name: 'all pods of a node are frozen',
    weight: 0,
    strike({ dice, kubelets }) {
      const node = dice.pick(kubelets.nodes.all);
      if (node) kubelets.freezeNode(node, dice.int(35_000, 55_000));
    },
  },
  {
    name: 'a node is cordoned',
    weight: 1,
    strike({ scheduler, dice, kubelets }) {
      const node = dice.pick(kubelets.nodes.all);
      if (kubelets.nodes.all.some(({ cordoned }) => cordoned)) return;
      kubelets.nodes.cordon(node, true);
      scheduler.after(dice.skewed(2000, 60_000), undefined, `${node.name} takes pods again`, () =>
        kubelets.nodes.cordon(node, false),
      );
    },
  },
  {
    name: 'hours pass unnoticed',
    weight: 0.3,
    strike: (stage) => pass(stage.dice.skewed(60_000, 4 * 3_600_000), stage),
  },
  {
    name: 'a node is lost',
    weight: 1,
    strike({ scheduler, dice, kubelets }) {
      const node = dice.pick(kubelets.nodes.all.filter(({ reachable }) => reachable));
      if (!node) return;
      const dead = dice.chance(0.5);
      kubelets.loseNode(node, dead);
      const back = dice.skewed(2000, 90_000);
      scheduler.after(back, undefined, `${node.name} is back`, () => kubelets.restoreNode(node));
      if (dice.chance(0.5)) {
        const force = dead && dice.chance(0.5);
        scheduler.after(dice.skewed(500, back), undefined, `pods of ${node.name} are given up`, () =>
          kubelets.drainLost(node, force),
        );
      }
    },
  },
  {
    name: 'the API server is killed',
    weight: 1,
    strike: ({ dice, server }) => server.restart(dice.skewed(50, 5000)),
  },
  {
    name: 'everything is killed at once',
    weight: 1,
    strike({ dice, server, replicas, kubelets }) {
      for (const replica of replicas) replica.kill();
      for (const { pod } of kubelets.running) kubelets.kill(pod, 'Error');
      server.restart(dice.skewed(50, 5000));
      // The embedded cluster releases the lease after a restart, because no request of its dead processes is left.
      const lease = dice.chance(0.5) ? server.get(leases, 'berth', 'berth-controller') : undefined;
      if (!lease) return;
      const free = { ...lease, spec: { ...lease.spec, holderIdentity: '' } };
      void server.admin.replace(leases, free).catch(() => {});
    },
  },
  {
    name: 'the lease is deleted while requests of the leader are held up',
    weight: 1,
    strike({ dice, server, replicas }) {
      for (const { isLeading, process } of replicas) {
        if (isLeading && process) server.hold(process.name, dice.skewed(100, LEASE_MS));
      }
      void server.admin.delete(leases, { namespace: 'berth', name: 'berth-controller' }).catch(() => {});
      const dying = replicas.filter(({ isLeading }) => dice.chance(isLeading ? 0.6 : 0.3));
      for (const replica of dying) replica.kill();
    },
  },
  {
    name: 'the lease is deleted, and its former holder is told to stop before it learns of it',
    weight: 0,
    strike: (stage) => replaceLeader(stage, stage.dice.skewed(2000, 8000), (leader) => leader.stop()),
  },
  {
    name: 'the lease is deleted, and its next holder is told to stop before requests of the former are over',
    weight: 0,
    strike: (stage) => replaceNext(stage, (next) => next?.stop()),
  },
  {
    name: 'the lease is deleted, and its next holder is killed before requests of the former are over',
    weight: 0,
    strike: (stage) => replaceNext(stage, (next) => next?.kill()),
  },
  {
    name: 'the leader is killed while its requests are held up',
    weight: 0,
    strike({ scheduler, dice, server, replicas }) {
      const leader = replicas.find(({ isLeading }) => isLeading);
      if (!leader?.process) return;
      server.hold(leader.process.name, dice.int(2000, LEASE_MS));
      scheduler.after(dice.int(50, 2000), undefined, 'the leader is killed', () => leader.kill());
    },
  },
];

/** Lets misfortunes strike, one after the other, until `end` repairs everything. */
export class Chaos {
  readonly #stage: Stage;
  readonly #everyMs: number;
  readonly #drawn: readonly Misfortune[];
  #over = false;

  /** `everyMs` is the approximate time between misfortunes, Infinity for none; `only` names those that may happen. */
  constructor(stage: Stage, everyMs: number, only?: readonly string[]) {
    this.#stage = stage;
    this.#everyMs = everyMs;
    this.#drawn = misfortunes.filter(({ name, weight }) =>
      only ? only.includes(name) : weight > 0 && stage.dice.chance(0.6),
    );
    if (Number.isFinite(everyMs)) this.#next();
    this.#watch();
  }

  end(): void {
    const { kubelets, replicas, scheduler } = this.#stage;
    this.#over = true;
    for (const node of kubelets.nodes.all) {
      node.frozenUntil = 0;
      if (!node.reachable) kubelets.restoreNode(node);
    }
    const { skewMs } = this.#stage.server.clock;
    for (const replica of replicas) replica.skewMs = skewMs;
    for (const { process } of [...replicas, ...kubelets.running.map(({ container }) => container)]) {
      if (!process) continue;
      process.skewMs = skewMs;
      process.pausedUntil = Math.min(process.pausedUntil, scheduler.now);
    }
  }

  #next(): void {
    const { scheduler, dice, trace } = this.#stage;
    scheduler.after(this.#everyMs * (0.1 + 2 * dice.uniform()), undefined, 'misfortune', () => {
      if (this.#over) return;
      const drawn = dice.weighted(this.#drawn) ?? this.#drawn[0];
      trace.line(() => ['chaos', drawn?.name ?? 'nothing']);
      drawn?.strike(this.#stage);
      this.#next();
    });
  }

  /** Restarts dead controllers, as a Deployment does. */
  #watch(): void {
    const { scheduler, dice, replicas } = this.#stage;
    scheduler.after(500, undefined, 'deployment', () => {
      for (const replica of replicas) {
        if (!replica.process?.alive && (this.#over || dice.chance(0.3))) replica.start();
      }
      this.#watch();
    });
  }
}
