/** Which runs there are: each scenario once clean, then with one fault at each of its exchanges. */
import type { Random } from '../../core/runtime.ts';
import type { Bench } from './bench.ts';
import type { Client } from './clients.ts';
import { ALIKE, type Exchange, FAULTS, type FaultName } from './proxy/faults.ts';
import { type Planned, performed } from './run.ts';
import type { Scenario } from './scenario.ts';

export interface Failure {
  run: string;
  error: unknown;
}

export interface Report {
  runs: number;
  /** Faults whose exchange did not come: a wait was shorter this time. */
  notMade: number;
  failures: Failure[];
}

/** Gets each run with its exchanges, or with the error of what has not held, and the milliseconds that it took. */
export type OnRun = (run: Planned, ms: number, result: { exchanges: readonly Exchange[] } | { error: unknown }) => void;

export const nameOf = ({ scenario, client, fault }: Planned) =>
  `${scenario.name}, ${client.name}${fault ? `, ${fault.name} at ${fault.at}` : ''}`;

/** Returns the faults that are possible at the exchanges of a clean run. */
function faultsOf(planned: Planned, exchanges: readonly Exchange[]): Planned[] {
  const { without, name: scenario, faulty } = planned.scenario;
  const possible = exchanges.flatMap((exchange, at) => {
    const isTurnOf = (name: FaultName) =>
      ALIKE.every((group) => !group.includes(name) || group[(scenario.length + at) % group.length] === name);
    return (Object.keys(FAULTS) as FaultName[])
      .filter((name) => isTurnOf(name) && without[name] === undefined && FAULTS[name](exchange))
      .map((name) => ({ ...planned, fault: { name, at }, clean: exchanges }));
  });
  return faulty === undefined ? possible : spread(possible, faulty);
}

/** Returns `count` of the items at equal distances. */
function spread<T>(items: readonly T[], count: number): T[] {
  const distance = Math.max(1, items.length / count);
  return items.filter((_, at) => Math.floor((at + 1) / distance) > Math.floor(at / distance));
}

/** Returns `count` of the runs, chosen so that as many different faults and scenarios as possible are among them. */
export function chosen(runs: readonly Planned[], count: number, random: Random): Planned[] {
  const left = [...runs];
  const used = new Map<string, number>();
  const costOf = ({ scenario, client, fault }: Planned) =>
    [`${client.name} ${fault?.name}`, `${client.name} ${scenario.name}`].reduce(
      (sum, key) => sum + (used.get(key) ?? 0),
      0,
    );
  const picked: Planned[] = [];
  while (picked.length < count && left.length > 0) {
    const least = Math.min(...left.map(costOf));
    const candidates = left.filter((run) => costOf(run) === least);
    const run = candidates[Math.floor(random.uniform() * candidates.length)] as Planned;
    left.splice(left.indexOf(run), 1);
    picked.push(run);
    for (const key of [`${run.client.name} ${run.fault?.name}`, `${run.client.name} ${run.scenario.name}`]) {
      used.set(key, (used.get(key) ?? 0) + 1);
    }
  }
  return picked;
}

/** Returns `count` of the items, in their order. */
export function sample<T>(items: readonly T[], count: number, random: Random): T[] {
  const drawn = new Set<number>();
  while (drawn.size < Math.min(count, items.length)) drawn.add(Math.floor(random.uniform() * items.length));
  return items.filter((_, at) => drawn.has(at));
}

/** Performs the runs, as many at a time as there are lanes; those that kill the API come after the others, one at a time. */
export async function perform(bench: Bench, runs: readonly Planned[], onRun: OnRun = () => {}): Promise<Report> {
  const report: Report = { runs: 0, notMade: 0, failures: [] };
  const one = async (lane: string, run: Planned) => {
    report.runs++;
    const start = performance.now();
    const ms = () => Math.round(performance.now() - start);
    try {
      const { exchanges, wasMade } = await performed(bench, lane, run);
      if (run.fault && !wasMade) report.notMade++;
      onRun(run, ms(), { exchanges });
    } catch (error) {
      report.failures.push({ run: nameOf(run), error });
      onRun(run, ms(), { error });
    }
  };
  const kills = runs.filter(({ fault }) => fault?.name === 'kill');
  const others = runs.filter(({ fault }) => fault?.name !== 'kill').values();
  await Promise.all(
    bench.lanes.map(async (lane) => {
      for (const run of others) await one(lane, run);
    }),
  );
  for (const run of kills) await one(bench.lanes[0] as string, run);
  return report;
}

/** Performs every scenario with every client once without a fault; resolves with the runs with a fault that follow from them. */
export async function performClean(
  bench: Bench,
  scenarios: readonly Scenario[],
  clients: readonly Client[],
  onRun: OnRun = () => {},
): Promise<{ report: Report; faulty: Planned[] }> {
  const clean = scenarios.flatMap((scenario) => clients.map((client) => ({ scenario, client })));
  const faulty: Planned[] = [];
  const report = await perform(bench, clean, (run, ms, result) => {
    onRun(run, ms, result);
    if ('exchanges' in result) faulty.push(...faultsOf(run, result.exchanges));
  });
  // The order in which runs end is chance.
  faulty.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  return { report, faulty };
}
