import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../core/runtime.ts';
import type { Directories } from '../directories.ts';
import { StartError, TurnFailure } from '../errors.ts';
import type { Contained, StartProcess } from '../process/contained.ts';
import { checkWorkingDirectory, findProgram } from '../process/program.ts';
import { redact, secretForms } from '../text/redact.ts';
import { conclude, turnError } from './conclude.ts';
import { type Flow, OutputReader } from './drain.ts';
import type { Completion, Driver, SessionFacts, StopReason, TurnHooks, TurnRequest } from './driver.ts';
import type { Envelope } from './envelope.ts';
import { agentEnvironment, standardVariables } from './environment.ts';
import { argsWith, checkArguments, requestOf, textOf, writeInputFile } from './input.ts';
import { expand } from './placeholders.ts';
import { type ResultReader, resultReader } from './result.ts';

export interface CommandOptions {
  facts: SessionFacts;
  directories: Directories;
  /** The image's. */
  path: string;
  start: StartProcess;
  flow: Flow;
  clock: Clock;
}

/** All that a turn's process is started with. */
interface Plan {
  file: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  stdin: string;
  reader: ResultReader;
  /** Removes the turn's files. */
  remove: () => void;
}

/** A fresh process for every turn: what it used is the machine's again when it ends. */
export class CommandDriver implements Driver {
  readonly #options: CommandOptions;
  readonly #secrets: readonly string[];
  /** Every family of which somebody may be left, those of earlier turns too. */
  readonly #families = new Set<Contained>();

  constructor(options: CommandOptions) {
    this.#options = options;
    this.#secrets = secretForms(options.facts.secrets.values());
  }

  async run(request: TurnRequest, hooks: TurnHooks): Promise<Completion> {
    let plan: Plan | undefined;
    try {
      plan = this.#plan(request, hooks);
      return await this.#execute(plan, hooks);
    } catch (error) {
      if (!(error instanceof TurnFailure)) throw error;
      return { outcome: 'Failed', error: turnError(error.code, error.message, this.#secrets), leftRunning: [] };
    } finally {
      plan?.remove();
    }
  }

  async stop(graceMs: number): Promise<void> {
    const families = [...this.#families];
    for (const family of families) family.terminate();
    const cancel = this.#options.clock.setTimer(graceMs, () => {
      for (const family of families) family.kill();
    });
    await Promise.all(families.map((family) => family.gone));
    cancel();
  }

  #plan(request: TurnRequest, hooks: TurnHooks): Plan {
    const { facts, directories, path } = this.#options;
    const { agent } = facts;
    const cwd = agent.workingDir ?? directories.work;
    checkWorkingDirectory(cwd);
    const nonce = randomBytes(12).toString('hex');
    const markers = { start: `<<<BERTH_RESULT_START:${nonce}>>>`, end: `<<<BERTH_RESULT_END:${nonce}>>>` };
    const resultFile = join(directories.run, `result-${nonce}.json`);
    const inputFile = `input-${nonce}.json`;
    const env = agentEnvironment(facts, directories, path, {
      BERTH_STATE_DIR: directories.state,
      BERTH_SESSION: facts.name,
      BERTH_TURN: request.turn.name,
      ...(agent.result === 'Envelope' && {
        BERTH_RESULT_START_MARKER: markers.start,
        BERTH_RESULT_END_MARKER: markers.end,
        BERTH_RESULT_FILE: resultFile,
      }),
      ...(agent.input === 'File' && { BERTH_INPUT_FILE: join(directories.run, inputFile) }),
    });
    const [program = '', ...fixed] = agent.command;
    const file = findProgram(program, env.PATH ?? path, cwd);
    const input = this.#input(request);
    const args = [...fixed, ...input.args];
    checkArguments(args);
    const removals = [() => rmSync(resultFile, { force: true, recursive: true })];
    if (input.file !== undefined) removals.push(writeInputFile(directories.run, inputFile, input.file).remove);
    return {
      file,
      args,
      cwd,
      env,
      stdin: input.stdin,
      reader: resultReader(agent.result, {
        markers,
        file: resultFile,
        secrets: this.#secrets,
        onLog: (bytes) => hooks.log.stdout(bytes),
      }),
      remove: () => {
        for (const remove of removals) remove();
      },
    };
  }

  /** How the input reaches the agent. */
  #input(request: TurnRequest): { args: string[]; stdin: string; file?: string } {
    const { facts, directories, clock } = this.#options;
    const { agent } = facts;
    const standard = standardVariables(facts, directories);
    const line = () => `${JSON.stringify(requestOf(facts, request, clock))}\n`;
    if (agent.input === 'Args') return { args: argsWith(agent.args, request.turn.input, standard), stdin: '' };
    const args = agent.args.map((arg) => expand(arg, standard));
    if (agent.input === 'File') return { args, stdin: '', file: line() };
    return { args, stdin: agent.input === 'Text' ? textOf(request.turn.input) : line() };
  }

  async #execute(plan: Plan, hooks: TurnHooks): Promise<Completion> {
    const { facts, start, flow, clock } = this.#options;
    const { file, args, cwd, env } = plan;
    if (hooks.signal.aborted) {
      const { outcome, error } = hooks.signal.reason as StopReason;
      return { outcome, error, leftRunning: [] };
    }
    const argv0 = facts.agent.command[0] ?? file;
    const family = await start({ file, argv0, args, cwd, env }).catch((error) => {
      throw startFailure(error, file);
    });
    this.#families.add(family);
    void family.gone.then(() => this.#families.delete(family));
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
    // An agent need not read its input.
    family.stdin.on('error', () => {});
    family.stdin.end(plan.stdin);

    const stopped = await this.#ended(family, hooks.signal);
    const exit = await family.exited;
    hooks.collecting();
    await output.drain();
    over = true;
    const result = read(plan.reader);
    const ending = { exit, stopped, result, errorTail: hooks.log.errorTail(), secrets: this.#secrets };
    const leftRunning = await family.survivors();
    return {
      ...conclude(ending),
      leftRunning: leftRunning.map(({ pid, command }) => ({ pid, command: redact(command, this.#secrets) })),
    };
  }

  /** Waits for the process's end. When it has to be stopped first, all of its family is. */
  async #ended(family: Contained, signal: AbortSignal): Promise<StopReason | undefined> {
    let stopped: StopReason | undefined;
    let cancelKill = () => {};
    const stop = () => {
      stopped = signal.reason as StopReason;
      family.terminate();
      cancelKill = this.#options.clock.setTimer(stopped.graceMs, () => family.kill());
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    await family.exited;
    signal.removeEventListener('abort', stop);
    if (stopped) await family.gone;
    cancelKill();
    return stopped;
  }
}

function read(reader: ResultReader): Envelope | TurnFailure | undefined {
  try {
    return reader.finish();
  } catch (error) {
    if (error instanceof TurnFailure) return error;
    throw error;
  }
}

function startFailure(error: unknown, file: string): unknown {
  if (!(error instanceof StartError)) return error;
  const { step, code } = error;
  if (step !== 'exec') return new TurnFailure('InternalError', `the agent could not be started: ${error.message}`);
  if (code === 'E2BIG') {
    return new TurnFailure('InvalidInput', 'agent.args and agent.env are together too large for a process (E2BIG)');
  }
  if (code === 'ENOENT') {
    return new TurnFailure(
      'CommandNotFound',
      `agent.command: what runs ${file} (its #! line or loader) does not exist`,
    );
  }
  const hint = code === 'ENOEXEC' ? ': it is no program for this machine and has no #! line' : '';
  return new TurnFailure('CommandNotExecutable', `agent.command: ${file} cannot be executed (${code})${hint}`);
}
