import type { Limits, Usage } from '../../core/frames/messages.ts';
import type { Clock } from '../../core/runtime.ts';
import { ALL_STOPPED, type Contained, type StartProcess, type Unstopped } from '../process/contained.ts';
import { type Overrun, overrunAtEnd, tooManyProcesses } from './overrun.ts';
import { overrunOfPod, type PodMemory } from './pod-memory.ts';

const LOOK_MS = 200;
/** Interval of checks while more than half of the pod's memory is used, milliseconds. */
const CLOSE_LOOK_MS = 25;

export interface MeterOptions {
  limits: Limits;
  /** Memory of the session's pod; absent where it has no limit. */
  memory?: PodMemory | undefined;
  /** True if the process limit applies to the whole session; otherwise to each family. */
  together: boolean;
  /** False if no files of the session are read: its processes never have to stand still. */
  holds?: boolean;
  clock: Clock;
}

type Measured = Omit<Usage, 'wallMs'>;

/**
 * Tracks the families of the session's processes: their usage together, for the running turn, which of them must end, and when they
 * stand still. A family ended for a limit has an `overrun`. Commands that clients run beside the turn are not part of its usage, count
 * in the limits of the session, and are ended first.
 */
export class Meter {
  readonly #options: MeterOptions;
  readonly #living = new Set<Contained>();
  readonly #commands = new Set<Contained>();
  readonly #starting = new Set<Promise<unknown>>();
  /** Resolves when the families go on; undefined while they run. */
  #held: Promise<void> | undefined;
  /** Families that stand still. */
  readonly #still = new Map<Contained, Promise<Unstopped>>();
  /** True while commands stand beyond the work for which all families do. */
  #commandsStand = false;
  /** Families whose process ended at a limit of its own and whose remaining processes nobody is ending. */
  readonly #left = new WeakSet<Contained>();
  #endedCpuUs = 0;
  #turn: { cpuUs: number; peakBytes: number; processes: number; begun: Set<Contained> } | undefined;
  #cancelLook: (() => void) | undefined;

  constructor(options: MeterOptions) {
    this.#options = options;
  }

  /** Returns a start function that also tracks the family, as one of the turn's or as a command. */
  wrap(start: StartProcess, as: 'turn' | 'command' = 'turn'): StartProcess {
    const families = as === 'turn' ? this.#living : this.#commands;
    return async (spec) => {
      while (this.#held) await this.#held;
      const oomKills = this.#options.memory?.oomKills?.();
      const starting = start(spec).then((family) => {
        families.add(family);
        return family;
      });
      this.#starting.add(starting);
      const family = await starting.finally(() => this.#starting.delete(starting));
      if (as === 'turn') this.#turn?.begun.add(family);
      else if (this.#commandsStand) void this.#hold(family);
      family.onUsage(() => this.#changed());
      this.#watch();
      void family.exited.then((exit) => {
        if (!family.overrun) {
          const wasKilled = exit.signal === 'SIGKILL' || exit.code === 137;
          const killed = wasKilled ? this.#options.memory?.killedSince?.(oomKills) : undefined;
          family.overrun = overrunAtEnd(exit, this.#options.limits) ?? killed;
          if (family.overrun) this.#left.add(family);
        }
        this.#changed();
      });
      void family.gone.then(() => {
        this.#changed();
        if (as === 'turn') this.#endedCpuUs += family.usage?.cpuUs ?? 0;
        families.delete(family);
        this.#still.delete(family);
      });
      // The usage that came with the start counts as long as nothing changes.
      this.#changed();
      return family;
    };
  }

  /** Notes that a turn begins. */
  begin(): void {
    this.#turn = { cpuUs: this.#cpuUs, peakBytes: 0, processes: 0, begun: new Set() };
  }

  /** Returns the usage since the turn began; empty where nothing is measured. */
  read(): Measured {
    const turn = this.#turn;
    const measured = turn && ([...turn.begun, ...this.#living].some(({ usage }) => usage) || this.#endedCpuUs > 0);
    if (!turn || !measured) return {};
    return {
      cpuSeconds: Math.max(0, this.#cpuUs - turn.cpuUs) / 1e6,
      peakMemoryBytes: turn.peakBytes,
      processes: turn.processes,
    };
  }

  /**
   * Does the work while every process of the session stands still, and gives it those that could not be stopped. Processes that
   * are to start during it start afterwards. Without a living process the work begins at once.
   */
  async whileHeld<T>(work: (unstopped: Unstopped) => Promise<T>): Promise<T> {
    while (this.#held) await this.#held;
    const { holds = true } = this.#options;
    if (!holds || this.#all.length + this.#starting.size === 0) return work(ALL_STOPPED);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    try {
      await Promise.allSettled(this.#starting);
      const families = this.#all;
      try {
        const unstopped = await Promise.all(families.map((family) => this.#hold(family)));
        return await work({ named: unstopped.flatMap(({ named }) => named), count: total(unstopped) });
      } finally {
        for (const family of families) if (!(this.#commandsStand && this.#commands.has(family))) this.#release(family);
      }
    } finally {
      this.#held = undefined;
      resolve();
    }
  }

  /** Sets whether commands stand still. They go on once they need not stand for other work either. */
  standCommands(stand: boolean): void {
    this.#commandsStand = stand;
    for (const family of this.#commands) {
      if (stand) void this.#hold(family);
      else if (!this.#held) this.#release(family);
    }
  }

  get #all(): Contained[] {
    return [...this.#living, ...this.#commands];
  }

  /** Has a family stand that does not stand yet: what stood before a second hold would not go on after it. */
  #hold(family: Contained): Promise<Unstopped> {
    const unstopped = this.#still.get(family) ?? family.hold();
    this.#still.set(family, unstopped);
    return unstopped;
  }

  #release(family: Contained): void {
    if (this.#still.delete(family)) family.release();
  }

  get #cpuUs(): number {
    return sum(this.#living, 'cpuUs') + this.#endedCpuUs;
  }

  #changed(): void {
    const turn = this.#turn;
    const processes = sum(this.#living, 'processes');
    const together = processes + sum(this.#commands, 'processes');
    if (turn) {
      const began = [...turn.begun].map(({ usage }) => usage);
      turn.peakBytes = Math.max(
        turn.peakBytes,
        sum(this.#living, 'memoryBytes'),
        ...began.map((use) => use?.peakBytes ?? 0),
      );
      turn.processes = Math.max(turn.processes, processes, ...began.map((use) => use?.mostProcesses ?? 0));
    }
    const most = this.#options.limits.processes;
    if (this.#options.together && most !== undefined && together > most) {
      this.#end('processes', tooManyProcesses(together, most));
    }
  }

  /** Checks the pod while any family runs in it. */
  #watch(): void {
    const { memory, clock } = this.#options;
    if (!memory || this.#cancelLook) return;
    const look = () => {
      this.#cancelLook = undefined;
      if (this.#all.length === 0) return;
      // A reading that fails, as on a node short of open files, says nothing about the next.
      const now = memory.read();
      const over = now && overrunOfPod(now);
      if (over) this.#end('memoryBytes', over);
      const near = now && now.bytes * 2 > now.limit;
      this.#cancelLook = clock.setTimer(Math.max(near ? CLOSE_LOOK_MS : LOOK_MS, now?.restMs ?? 0), look);
    };
    this.#cancelLook = clock.setTimer(CLOSE_LOOK_MS, look);
  }

  /**
   * Kills the family with the highest usage; where memory is short, commands before the turn's. A family that is being killed must be
   * gone first.
   */
  #end(of: 'processes' | 'memoryBytes', overrun: Overrun): void {
    if (this.#all.some((family) => family.overrun && !this.#left.has(family))) return;
    const candidates = of === 'memoryBytes' && this.#commands.size > 0 ? [...this.#commands] : this.#all;
    const [most] = candidates.sort((a, b) => (b.usage?.[of] ?? 0) - (a.usage?.[of] ?? 0));
    if (!most) return;
    most.overrun = overrun;
    this.#left.delete(most);
    most.kill();
  }
}

function total(unstopped: readonly Unstopped[]): number {
  return unstopped.reduce((sum, { count }) => sum + count, 0);
}

function sum(families: Iterable<Contained>, of: 'cpuUs' | 'memoryBytes' | 'processes'): number {
  let total = 0;
  for (const { usage } of families) total += usage?.[of] ?? 0;
  return total;
}
