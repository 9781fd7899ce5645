import { conclude } from '../../core/result/conclude.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import { checkWorkingDirectory, findProgram } from '../process/program.ts';
import { redactedSurvivors } from '../process/survivors.ts';
import { remakeDirectories } from '../system/directories.ts';
import { Clip, type Clipped } from '../text/clip.ts';
import type { Completion, Driver, DriverOptions, StopReason, TurnHooks, TurnRequest } from './driver.ts';
import { agentEnvironment } from './environment.ts';
import { failedBy } from './failed.ts';
import { type ProcessPlan, runOnce } from './once.ts';
import { SessionProcesses } from './session-processes.ts';
import { type ShellInput, shellInput } from './shell-input.ts';

/** Bytes of each stream's beginning in the result; the turn's log has more. */
const HEAD_BYTES = 32 * 1024;
const TAIL_BYTES = 32 * 1024;
const SHELLS = ['bash', 'sh'] as const;

/** Plan of a turn's shell. */
interface ShellPlan extends Omit<ProcessPlan, 'reader'> {
  shell: (typeof SHELLS)[number];
}

/**
 * Runs the text of each turn in a fresh shell. The turn ends with the shell; background processes of the text run on
 * until the session ends or the turn is stopped.
 */
export class ShellDriver implements Driver {
  readonly #options: DriverOptions;
  readonly #secrets: Hidden;
  readonly #processes: SessionProcesses;

  constructor(options: DriverOptions) {
    this.#options = options;
    this.#secrets = options.facts.hidden;
    this.#processes = new SessionProcesses(options.start, options.clock);
  }

  async run(request: TurnRequest, hooks: TurnHooks): Promise<Completion> {
    try {
      const { facts, directories } = this.#options;
      const base = facts.agent.workingDir ?? directories.work;
      remakeDirectories(directories);
      checkWorkingDirectory(base);
      const input = shellInput(request.turn.input, base);
      return await this.#execute(await this.#plan(input, request), input.merge, request.restored, hooks);
    } catch (error) {
      return failedBy(error, this.#secrets);
    }
  }

  stop(graceMs: number): Promise<void> {
    return this.#processes.stop(graceMs);
  }

  async #plan(input: ShellInput, { turn, approval }: TurnRequest): Promise<ShellPlan> {
    const { facts, directories, path } = this.#options;
    const env = agentEnvironment(facts, directories, path, {
      ...input.env,
      BERTH_STATE_DIR: directories.state,
      BERTH_SESSION: facts.name,
      BERTH_TURN: turn.name,
      ...(approval && { BERTH_APPROVAL: JSON.stringify(approval) }),
    });
    const { shell, file } = findShell(path, input.cwd);
    const text = shell === 'bash' ? await this.#textFor(file, input, env) : input.command;
    // stdin is /dev/null and not a pipe: programs like ripgrep would read a pipe instead of the files. With -p BASH_ENV
    // applies to the text alone.
    const opening = `exec "$0" "$@" </dev/null${input.merge ? ' 2>&1' : ''}`;
    const privileged = shell === 'bash' ? ['-p'] : [];
    // A shell takes what follows -c for options as long as it begins with - or +, and a text may. Not every shell takes --.
    const literal = /^[-+]/.test(text) ? ['--'] : [];
    // $0 of the text is the shell's name, also in the shell's messages.
    const args = [...privileged, '-c', opening, file, '-c', ...literal, text, shell];
    return { shell, field: 'the shell', file, argv0: shell, args, cwd: input.cwd, env, stdin: '', remove: () => {} };
  }

  /** Returns the text that bash gets. */
  async #textFor(bash: string, { command, cwd }: ShellInput, env: Record<string, string>): Promise<string> {
    if (!this.#options.facts.agent.shell?.rewriteBackground) return command;
    // The parser is loaded here, so that other sessions need not load it.
    const { rewriteForBash } = await import('../shell/rewrite.ts');
    const text = rewriteForBash(command, env, cwd);
    return text === command || (await this.#parses(bash, text, cwd, env)) ? text : command;
  }

  /** Reports whether this bash can parse the text: its message would quote a rewritten text that it cannot parse. */
  async #parses(bash: string, text: string, cwd: string, env: Record<string, string>): Promise<boolean> {
    const args = ['-p', '-n', '-c', '--', text];
    const family = await this.#processes.start({ file: bash, argv0: 'bash', args, cwd, env }, 'the shell');
    for (const stream of [family.stdout, family.stderr]) stream.on('error', () => {}).resume();
    family.stdin.on('error', () => {}).end();
    return (await family.exited).code === 0;
  }

  async #execute(
    { shell, ...plan }: ShellPlan,
    merge: boolean,
    restored: TurnRequest['restored'],
    hooks: TurnHooks,
  ): Promise<Completion> {
    if (hooks.signal.aborted) {
      const { outcome, error } = hooks.signal.reason as StopReason;
      return { outcome, error, leftRunning: [] };
    }
    const stdout = new Clip(HEAD_BYTES, TAIL_BYTES);
    const stderr = new Clip(HEAD_BYTES, TAIL_BYTES);
    let redactions = 0;
    hooks.log.observe({
      stdout: (text) => stdout.push(text),
      stderr: (text) => stderr.push(text),
      hidden: () => {
        redactions += 1;
      },
    });
    // The whole stdout is text.
    const reader = { push: (bytes: Buffer) => hooks.log.stdout(bytes), finish: () => undefined };
    const { exit, stopped, family } = await runOnce({ ...plan, reader }, this.#processes, this.#options, hooks);
    hooks.log.flush();
    const survivors = await family.survivors();
    const leftRunning = redactedSurvivors(survivors, this.#secrets.errors);
    const given = hooks.given();
    if (given) {
      const ending = { exit, stopped, result: given, errorTail: hooks.log.errorTail(), secrets: this.#secrets };
      return { ...conclude(ending), leftRunning };
    }
    const texts = merge ? { output: stdout.result() } : { stdout: stdout.result(), stderr: stderr.result() };
    const facts = {
      exitCode: exit.code,
      signal: exit.signal,
      shell,
      background: redactedSurvivors(survivors, this.#secrets.outputs),
    };
    return {
      outcome: stopped?.outcome ?? 'Succeeded',
      ...(stopped && { error: stopped.error }),
      // A command is not given the request: whoever reads the result learns here that files are gone.
      output: { ...textsOf(texts), ...facts, ...truncation(texts), ...(restored && { restored }) },
      ...(redactions > 0 && { redactions }),
      ...(exit.code !== null && { exitCode: exit.code }),
      ...(exit.signal !== null && { signal: exit.signal }),
      leftRunning,
    };
  }
}

/** Finds bash, or sh where there is none. Throws a TurnFailure where there is neither. */
function findShell(path: string, cwd: string): Pick<ShellPlan, 'shell' | 'file'> {
  for (const shell of SHELLS) {
    try {
      return { shell, file: findProgram(shell, path, cwd) };
    } catch (error) {
      if (!(error instanceof TurnFailure)) throw error;
    }
  }
  throw new TurnFailure(
    'CommandNotFound',
    `the driver Shell needs bash or sh, and neither is in a folder of the image's PATH (${path}); use an image that has one`,
  );
}

function textsOf(texts: Record<string, Clipped>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).map(([name, { text }]) => [name, text]));
}

/** Describes how much of each text is missing; an empty object when nothing is. */
function truncation(texts: Record<string, Clipped>) {
  const cut = Object.entries(texts).filter(([, { leftOut }]) => leftOut > 0);
  if (cut.length === 0) return {};
  return { truncated: Object.fromEntries(cut.map(([name, { bytes, leftOut }]) => [name, { bytes, leftOut }])) };
}
