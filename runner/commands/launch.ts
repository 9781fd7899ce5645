import { resolve } from 'node:path';
import type { CommandStart } from '../../core/enter/hello.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { Clock } from '../../core/runtime.ts';
import type { SessionFacts } from '../drivers/driver.ts';
import { agentEnvironment } from '../drivers/environment.ts';
import { SessionProcesses } from '../drivers/session-processes.ts';
import type { Contained, StartProcess } from '../process/contained.ts';
import { directoryProblem, findProgram } from '../process/program.ts';
import { type Directories, remakeDirectories } from '../system/directories.ts';

export interface LaunchOptions {
  facts: SessionFacts;
  directories: Directories;
  /** PATH of the agent. */
  path: string;
  /** Returns where a path of the pod is on this machine. */
  locate: (path: string) => string;
  /** Socket for requests that belong to no turn. */
  socket: string;
  start: StartProcess;
  clock: Clock;
}

/**
 * Returns the function that starts the process of a command: with the agent's environment and directory, but nothing of a turn.
 * It rejects with a TurnFailure that names the field that is wrong.
 */
export function launcher(options: LaunchOptions): (start: CommandStart) => Promise<Contained> {
  const { facts, directories, path, socket } = options;
  const processes = new SessionProcesses(options.start, options.clock);
  return async ({ command, cwd, env: own, tty }) => {
    remakeDirectories(directories);
    const home = facts.agent.workingDir ?? directories.work;
    const folder = resolve(home, options.locate(cwd ?? '.'));
    const problem = directoryProblem(folder);
    if (problem) throw new TurnFailure('WorkingDirInvalid', `start.cwd: ${folder} ${problem}`);
    const env: Record<string, string> = {
      ...agentEnvironment(facts, directories, path, {
        BERTH_STATE_DIR: directories.state,
        BERTH_SESSION: facts.name,
        BERTH_SOCKET: socket,
      }),
      ...(tty?.term !== undefined && { TERM: tty.term }),
      ...own,
    };
    const [program = '', ...args] = command;
    const file = findProgram(program, env.PATH ?? path, folder, 'start.command');
    return processes.start({ file, argv0: program, args, cwd: folder, env, ...(tty && { tty }) }, 'start.command');
  };
}
