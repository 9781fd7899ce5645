import { closeSync, openSync, readSync } from 'node:fs';
import { onAbort } from '../../core/abort.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Contained, ProcessSpec, StartProcess } from '../process/contained.ts';
import { SHORTAGES } from '../process/spawn.ts';
import { StartError } from '../system/errors.ts';
import type { StopReason } from './driver.ts';

/** Starts a session's processes and tracks every family that may still have processes, those of earlier turns too. */
export class SessionProcesses {
  readonly #start: StartProcess;
  readonly #clock: Clock;
  readonly #living = new Set<Contained>();

  constructor(start: StartProcess, clock: Clock) {
    this.#start = start;
    this.#clock = clock;
  }

  /** Rejects with a TurnFailure when the program cannot be executed. `field` names the setting with the program. */
  async start(spec: ProcessSpec, field = 'agent.command'): Promise<Contained> {
    const family = await this.#start(spec).catch((error) => {
      throw startFailure(error, spec.file, field);
    });
    this.#living.add(family);
    void family.gone.then(() => this.#living.delete(family));
    return family;
  }

  /** Stops all families: SIGTERM, and SIGKILL after the grace. Resolves when no process is left. */
  async stop(graceMs: number): Promise<void> {
    await Promise.all([...this.#living].map((family) => stopFamily(family, graceMs, this.#clock)));
  }
}

/**
 * Sends SIGTERM to every process of the family, and SIGKILL to the rest after the grace. Resolves when no process is
 * left.
 */
export async function stopFamily(family: Contained, graceMs: number, clock: Clock): Promise<void> {
  family.terminate();
  const cancel = clock.setTimer(graceMs, () => family.kill());
  await family.gone;
  cancel();
}

/** Waits for the process's end. If it has to be stopped first, its whole family is stopped. */
export async function endOf(family: Contained, signal: AbortSignal, clock: Clock): Promise<StopReason | undefined> {
  let stopped: StopReason | undefined;
  let stopping: Promise<void> | undefined;
  const remove = onAbort(signal, () => {
    stopped = signal.reason as StopReason;
    stopping = stopFamily(family, stopped.graceMs, clock);
  });
  await family.exited;
  remove();
  await stopping;
  // Processes that are being killed do not count as left running.
  if (family.killing) await family.gone;
  return stopped ?? overran(family);
}

/** Returns the stop reason of a family that a limit ended. */
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
    const why = endsInReturn(file)
      ? `the #! line of ${file} ends with a carriage return, which the kernel takes for part of the interpreter's name; save the file with line feeds alone (LF, not CRLF)`
      : `what runs ${file} (its #! line or loader) does not exist`;
    return new TurnFailure('CommandNotFound', `${field}: ${why}`);
  }
  const hint = code === 'ENOEXEC' ? ': it is no program for this machine and has no #! line' : '';
  return new TurnFailure('CommandNotExecutable', `${field}: ${file} cannot be executed (${code})${hint}`);
}

/** Bytes of the line that names an interpreter; the kernel reads no more of it. */
const MAX_INTERPRETER_LINE = 256;

/** Reports whether the first line of a file is a #! line that ends with a carriage return. */
function endsInReturn(file: string): boolean {
  try {
    const start = Buffer.alloc(MAX_INTERPRETER_LINE);
    const fd = openSync(file, 'r');
    try {
      const text = start.toString('latin1', 0, readSync(fd, start));
      return /^#!.*\r(\n|$)/.test(text);
    } finally {
      closeSync(fd);
    }
  } catch {
    return false;
  }
}

/** Failure of a program that was not started because its limits could not be set. */
function limitFailure(field: string, code: string): TurnFailure {
  const message =
    code === 'NoKeeper'
      ? 'the limits of the sandbox cannot be set where the runner has no keeper; run the session in a pod, or build one with make keeper'
      : `${field} cannot be set (${code}): the container allows less; lower it, or leave it out`;
  return new TurnFailure('LimitNotSet', message);
}
