/**
 * `make kill-loop`: sessions at work on an embedded cluster whose processes are killed with SIGKILL at random moments, and
 * started again. In the end every turn has to have ended, none of them run twice or lost, no index given to two turns
 * that succeeded, and each turn that succeeded has to have started from the state of the one before.
 */

import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { LocalProgram } from '../integration/local/program.ts';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/processes.ts';
import { seededRandom } from '../support/random.ts';
import type { RawApi } from '../support/raw-api.ts';
import { Workload } from './workload.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    /** `cluster`: everything, or its main process alone. `controller`: the controller alone. */
    mode: { type: 'string', default: 'cluster' },
    minutes: { type: 'string', default: '10' },
  },
});
const { mode } = values;
if (mode !== 'cluster' && mode !== 'controller') throw new Error('--mode is "cluster" or "controller"');
const kills = Number(values.kills);
const deadline = performance.now() + Number(values.minutes) * 60_000;

/** Times between the start, or readiness, and the kill. */
const MIN_MS = 200;
const MAX_MS = 4_000;
const STEP_MS = 60;
const READY_MS = 60_000;
const DRAIN_MS = 180_000;

const random = seededRandom(Number(values.seed));
const between = (from: number, to: number) => from + random.uniform() * (to - from);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const local = new LocalProgram();
const folder = join(tmpdir(), `berth-kill-loop-${process.pid}`);
const workload = new Workload(folder, random, 5);
let [killed, duringStart] = [0, 0];
let running = local.start('up');

/** Waits until the cluster is ready; false when it was not, as it was killed before. */
async function untilReady(): Promise<boolean> {
  const limit = performance.now() + READY_MS;
  const { child, stdout, ended } = running;
  while (child.exitCode === null && child.signalCode === null) {
    if (stdout().includes('is ready')) return true;
    if (performance.now() > limit) throw new Error('the cluster was not ready in time');
    await pause(20);
  }
  if (child.signalCode === null) throw new Error(`the cluster did not start: ${(await ended).stderr}`);
  return false;
}

/** Waits until a controller says that it leads. */
async function untilLed(): Promise<void> {
  const { metricsUrl } = await local.status();
  const leads = async () => /^berth_leader 1$/m.test(await (await fetch(metricsUrl)).text());
  await eventually(leads, { timeoutMs: READY_MS, what: 'a controller leads' });
}

/** Has the sessions work for this long; requests that a kill cuts are no failure. */
async function work(ms: number): Promise<void> {
  const until = performance.now() + ms;
  let api: RawApi | undefined;
  while (performance.now() < until) {
    try {
      api ??= await local.api();
      await workload.begin(api);
      break;
    } catch {
      await pause(STEP_MS);
    }
  }
  while (performance.now() < until) {
    await workload.step(api!).catch(() => {});
    await pause(STEP_MS);
  }
}

const isController = (pid: number) => commandOf(pid).includes('controller/main.ts');

/** Arguments of the process; empty when it has ended. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

function kill(): void {
  const programs = processesWith(`BERTH_LOCAL_HOME=${local.home}`);
  const pods = processesWith(`BERTH_LOCAL_ROOT=${local.home}/`);
  const main = running.child.pid!;
  if (mode === 'controller') {
    const controllers = programs.filter(isController);
    for (const pid of controllers) signal(pid);
    killed += controllers.length;
    return;
  }
  // Leftovers are the next start's to end: half of the kills leave all of them, the others a part or none.
  if (random.uniform() < 0.5) signal(main);
  else {
    const all = [main, ...programs, ...pods];
    const ordered = all.map((pid) => ({ pid, at: random.uniform() })).sort((a, b) => a.at - b.at);
    for (const { pid } of ordered) signal(pid);
  }
  killed += 1;
}

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

const began = performance.now();
try {
  await untilReady();
  while (killed < kills && performance.now() < deadline) {
    // A controller that was killed often comes back later and later: most kills wait until one leads.
    if (mode === 'controller' && (killed === 0 || random.uniform() < 0.8)) await untilLed();
    await work(between(MIN_MS, MAX_MS));
    kill();
    if (mode === 'controller') continue;
    await running.ended;
    running = local.start('up');
    // A fifth of the starts is killed too.
    while (killed < kills && random.uniform() < 0.2) {
      await pause(between(0, 1_500));
      kill();
      duringStart += 1;
      await running.ended;
      running = local.start('up');
    }
    await untilReady();
  }
  const limit = performance.now() + DRAIN_MS;
  const api = await local.api();
  for (let left = -1; left !== 0; await pause(STEP_MS)) {
    left = await workload.step(api, true);
    if (performance.now() < limit) continue;
    workload.violations.add(`${left} turns have not ended within ${DRAIN_MS / 1000} s`);
    break;
  }
  workload.judge();
} finally {
  await local.remove();
}

const seconds = Math.round((performance.now() - began) / 1000);
const { asked, ended } = workload.turns;
console.log(
  JSON.stringify({ mode, seed: Number(values.seed), kills: killed, duringStart, turns: asked, ended, seconds }),
);
for (const violation of workload.violations) console.log(`VIOLATION: ${violation}`);
console.log(`${workload.violations.size} violations`);
if (workload.violations.size > 0) {
  console.log(`what the agents wrote down is in ${folder}`);
  process.exitCode = 1;
} else rmSync(folder, { recursive: true });
