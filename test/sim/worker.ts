import { parentPort, workerData } from 'node:worker_threads';
import { runSeed } from './run.ts';

/** Runs the seeds that it receives, one after the other. */
parentPort?.on('message', async (seed: number) => {
  parentPort?.postMessage(await runSeed({ seed, ...workerData }));
});
