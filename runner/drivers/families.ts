import { TurnFailure } from '../../core/result/failure.ts';
import type { Clock } from '../../core/runtime.ts';
import { StartError } from '../errors.ts';
import type { Contained, ProcessSpec, StartProcess } from '../process/contained.ts';
import { SHORTAGES } from '../process/spawn.ts';
import type { StopReason } from './driver.ts';

/** Starts a session's processes and remembers every family of which somebody may be left, those of earlier turns too. */
export class Families {
  readonly #start: StartProcess;
  readonly #clock: Clock;
  readonly #living = new Set<Contained>();

  constructor(start: StartProcess, clock: Clock) {
    this.#start = start;
    this.#clock = clock;
  }

  /** Rejects with a TurnFailure when the program cannot be executed. `field` is where it is named. */
  async start(spec: ProcessSpec, field = 'agent.command'): Promise<Contained> {
    const family = await this.#start(spec).catch((error) => {
      throw startFailure(error, spec.file, field);
    });
    this.#living.add(family);
    void family.gone.then(() => this.#living.delete(family));
    return family;
  }

  /** Stops all of them: SIGTERM, and SIGKILL after the grace. Resolves when nobody is left. */
  async stop(graceMs: number): Promise<void> {
    await Promise.all([...this.#living].map((family) => stopFamily(family, graceMs, this.#clock)));
  }
}

/** SIGTERM to everybody of the family, SIGKILL to who is left after the grace. Resolves when nobody is. */
export async function stopFamily(family: Contained, graceMs: number, clock: Clock): Promise<void> {
  family.terminate();
  const cancel = clock.setTimer(graceMs, () => family.kill());
  await family.gone;
  cancel();
}

/** Waits for the process's end. When it has to be stopped first, all of its family is. */
export async function endOf(family: Contained, signal: AbortSignal, clock: Clock): Promise<StopReason | undefined> {
  let stopped: StopReason | undefined;
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopped = signal.reason as StopReason;
    stopping = stopFamily(family, stopped.graceMs, clock);
  };
  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });
  await family.exited;
  signal.removeEventListener('abort', stop);
  await stopping;
  // Who is being killed is not left running.
  if (family.killing) await family.gone;
  return stopped ?? overran(family);
}

/** Why it was ended, where a limit did it. */
export function overran({ overrun }: Contained): StopReason | undefined {
  return overrun && { outcome: 'Failed', error: overrun, graceMs: 0 };
}

function startFailure(error: unknown, file: string, field: string): unknown {
  if (!(error instanceof StartError)) return error;
  const { step, code } = error;
  if (step.startsWith('limit ')) return limitFailure(step.slice('limit '.length), code);
  const shortage = SHORTAGES[code];
  if (step !== 'exec' || shortage) {
    const words = shortage
      ? `: ${shortage}; give the turn again when other sessions have ended, or raise the limit`
      : '';
    return new TurnFailure('InternalError', `the agent could not be started: ${error.message}${words}`);
  }
  if (code === 'E2BIG') {
    return new TurnFailure('InvalidInput', 'agent.args and agent.env are together too large for a process (E2BIG)');
  }
  if (code === 'ENOENT') {
    return new TurnFailure('CommandNotFound', `${field}: what runs ${file} (its #! line or loader) does not exist`);
  }
  const hint = code === 'ENOEXEC' ? ': it is no program for this machine and has no #! line' : '';
  return new TurnFailure('CommandNotExecutable', `${field}: ${file} cannot be executed (${code})${hint}`);
}

/** A program without its limits is not started. */
function limitFailure(field: string, code: string): TurnFailure {
  const message =
    code === 'NoKeeper'
      ? 'the limits of the sandbox cannot be set where the runner has no keeper; run the session in a pod, or build one with make keeper'
      : `${field} cannot be set (${code}): the container allows less; lower it, or leave it out`;
  return new TurnFailure('LimitNotSet', message);
}
