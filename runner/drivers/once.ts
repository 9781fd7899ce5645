import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { glob, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentSpec } from '../../core/frames/messages.ts';
import type { Envelope } from '../../core/result/envelope.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { NoResult } from '../../core/result/no-result.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import { expand } from '../../core/text/placeholders.ts';
import type { Contained } from '../process/contained.ts';
import type { Exit } from '../process/exit.ts';
import { checkWorkingDirectory, findProgram } from '../process/program.ts';
import { remakeDirectories } from '../system/directories.ts';
import { errorCode } from '../system/errors.ts';
import { OutputReader } from './drain.ts';
import type { DriverOptions, StopReason, TurnHooks } from './driver.ts';
import { agentEnvironment, standardVariables } from './environment.ts';
import { type ArgumentsPlace, argsWith, checkArguments, textOf, writeInputFile } from './input.ts';
import { type ResultReader, resultReader } from './result.ts';
import { endOf, type SessionProcesses } from './session-processes.ts';

/** Command and input of a process. */
export interface ProcessRequest {
  command: string[];
  args: string[];
  /** Name of the setting with the command, for errors. */
  field: string;
  /** Name of the setting with the arguments, for errors. Default: agent.args. */
  place?: ArgumentsPlace;
  input: unknown;
  /** Builds the full request with the input. Throws a TurnFailure naming the field that is wrong. */
  request: () => object;
  /** Variables beginning with BERTH_ for this process only. */
  variables: Record<string, string>;
}

/** Program, arguments, environment and input of a process. */
export interface ProcessPlan {
  field: string;
  file: string;
  argv0: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  stdin: string;
  reader: ResultReader;
  /** Removes the files that were created for the process. */
  remove: () => void;
}

/** End of a process and its result. */
export interface Ran {
  exit: Exit;
  stopped: StopReason | undefined;
  result: Envelope | TurnFailure | NoResult | undefined;
  /** Family of the process; some of its processes may be left. */
  family: Contained;
}

type Hooks = Pick<TurnHooks, 'started' | 'active' | 'collecting' | 'event' | 'log' | 'signal'>;

/** Checks everything that can be checked before a start. Throws a TurnFailure that names the field. */
export function planOnce(
  { facts, directories, path }: DriverOptions,
  requested: ProcessRequest,
  hooks: Hooks,
  secrets: Hidden,
): ProcessPlan {
  const { agent } = facts;
  const { field, place } = requested;
  const cwd = agent.workingDir ?? directories.work;
  remakeDirectories(directories);
  checkWorkingDirectory(cwd);
  const nonce = randomBytes(12).toString('hex');
  const markers = { start: `<<<BERTH_RESULT_START:${nonce}>>>`, end: `<<<BERTH_RESULT_END:${nonce}>>>` };
  const resultFile = join(directories.run, `result-${nonce}.json`);
  const inputFile = `input-${nonce}.json`;
  const env = agentEnvironment(facts, directories, path, {
    BERTH_STATE_DIR: directories.state,
    BERTH_SESSION: facts.name,
    ...requested.variables,
    ...(agent.result === 'Envelope' && {
      BERTH_RESULT_START_MARKER: markers.start,
      BERTH_RESULT_END_MARKER: markers.end,
      BERTH_RESULT_FILE: resultFile,
    }),
    ...(agent.input === 'File' && { BERTH_INPUT_FILE: join(directories.run, inputFile) }),
  });
  const [program = '', ...fixed] = requested.command;
  const file = findProgram(program, env.PATH ?? path, cwd, field);
  const standard = standardVariables(facts, directories);
  const line = () => `${JSON.stringify(requested.request())}\n`;
  const expanded =
    agent.input === 'Args'
      ? argsWith(requested.args, requested.input, standard, place)
      : requested.args.map((arg) => expand(arg, standard));
  checkArguments(expanded, place);
  const args = [...fixed, ...expanded];
  const stdin = agent.input === 'Text' ? textOf(requested.input) : agent.input === 'Stdin' ? line() : '';
  const removals = [() => discard(resultFile)];
  if (agent.input === 'File') removals.push(writeInputFile(directories.run, inputFile, line()).remove);
  return {
    field,
    file,
    argv0: program,
    args,
    cwd,
    env,
    stdin,
    reader: resultReader(agent, {
      markers,
      file: resultFile,
      secrets,
      onLog: (bytes) => hooks.log.stdout(bytes),
      onEvent: (event) => hooks.event(event),
    }),
    remove: () => {
      for (const remove of removals) remove();
    },
  };
}

/** Runs the process to its end, or stops it. Rejects with a TurnFailure when the process cannot be started. */
export async function runOnce(
  plan: ProcessPlan,
  processes: SessionProcesses,
  { flow, clock }: Pick<DriverOptions, 'flow' | 'clock'>,
  hooks: Hooks,
): Promise<Ran> {
  const { file, argv0, args, cwd, env, field } = plan;
  const family = await processes.start({ file, argv0, args, cwd, env }, field);
  try {
    return await attend(family, plan, { flow, clock }, hooks);
  } catch (error) {
    // The family is killed here, because the caller that gets the failure does not know the processes.
    family.kill();
    await family.gone;
    throw error;
  }
}

async function attend(
  family: Contained,
  plan: ProcessPlan,
  { flow, clock }: Pick<DriverOptions, 'flow' | 'clock'>,
  hooks: Hooks,
): Promise<Ran> {
  hooks.started(family.pid);
  let over = false;
  const output = new OutputReader(family, flow, clock, {
    stdout: (bytes) => {
      hooks.active();
      if (over) hooks.log.stdout(bytes);
      else plan.reader.push(bytes);
    },
    stderr: (bytes) => {
      hooks.active();
      hooks.log.stderr(bytes);
    },
    end: () => hooks.log.flush(),
  });
  // Errors are ignored: an agent need not read its input.
  family.stdin.on('error', () => {});
  family.stdin.end(plan.stdin);

  const stopped = await endOf(family, hooks.signal, clock);
  const exit = await family.exited;
  hooks.collecting();
  await output.drain();
  over = true;
  return { exit, stopped, result: read(plan.reader), family };
}

/**
 * Returns the arguments for a process: `resumeArgs` once the state directory holds a file that matches `resumeWhen`, or
 * any file without it.
 */
export async function argumentsOf(agent: AgentSpec, stateDirectory: string): Promise<string[]> {
  const { args, resumeArgs, resumeWhen } = agent;
  if (!resumeArgs) return args;
  try {
    // Only the first match is read, because the agent can have created any number of files.
    const found = resumeWhen === undefined ? await opendir(stateDirectory) : glob(resumeWhen, { cwd: stateDirectory });
    for await (const _entry of found) return resumeArgs;
  } catch (error) {
    // The agent can have removed the directory, or put something else in its place.
    if (!['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errorCode(error))) throw error;
  }
  return args;
}

/** Removes a file if possible: the agent can have changed the folders on the way. */
function discard(path: string): void {
  try {
    rmSync(path, { force: true, recursive: true });
  } catch {
    // The turn has ended all the same.
  }
}

function read(reader: ResultReader): Ran['result'] {
  try {
    return reader.finish();
  } catch (error) {
    if (error instanceof TurnFailure) return error;
    throw error;
  }
}
