import type { Result } from './seeds.ts';
import { Simulation, type SimulationOptions } from './simulation.ts';

let current: Simulation | undefined;
// An unhandled rejection is a fault of the seed that runs at the moment.
process.on('unhandledRejection', (error) => current?.fail(`unhandled rejection: ${(error as Error)?.stack ?? error}`));

/** Runs one seed in this thread. */
export async function runSeed(options: SimulationOptions): Promise<Result> {
  const before = process.threadCpuUsage();
  const simulation = new Simulation(options);
  current = simulation;
  const outcome = await simulation.run();
  const { user, system } = process.threadCpuUsage(before);
  return { ...outcome, cpuMs: Math.round((user + system) / 1000) };
}
