import { onAbort } from '../../core/abort.ts';
import { conclude, endedBy, turnError } from '../../core/result/conclude.ts';
import type { Envelope } from '../../core/result/envelope.ts';
import type { TurnFailure } from '../../core/result/failure.ts';
import { pause } from '../../core/runtime.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import { expand } from '../../core/text/placeholders.ts';
import type { ProcessSpec, Survivor } from '../process/contained.ts';
import type { Exit } from '../process/exit.ts';
import { checkWorkingDirectory, findProgram } from '../process/program.ts';
import { redactedSurvivors } from '../process/survivors.ts';
import { remakeDirectories } from '../system/directories.ts';
import type { Completion, Driver, DriverOptions, StopReason, TurnHooks, TurnRequest } from './driver.ts';
import { agentEnvironment, standardVariables } from './environment.ts';
import { failedBy } from './failed.ts';
import { checkArguments, requestOf } from './input.ts';
import { argumentsOf } from './once.ts';
import { ServerProcess } from './server-process.ts';
import { overran, SessionProcesses, stopFamily } from './session-processes.ts';

/** Wait between a crash and the next start; doubled with every crash since the last answer. */
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 10_000;
/** Time from SIGTERM to SIGKILL for processes that a crashed server, or an earlier turn, left running, milliseconds. */
const LEFTOVER_GRACE_MS = 2000;

/** Ways in which the wait for an answer ends. */
type End =
  | { by: 'answer'; answer: Envelope | TurnFailure }
  | { by: 'exit'; exit: Exit }
  | { by: 'stop'; reason: StopReason };

/**
 * Driver with one process for many turns: requests go to its stdin, responses come from its stdout. A process that
 * ended is started again.
 */
export class ServerDriver implements Driver {
  readonly #options: DriverOptions;
  readonly #secrets: Hidden;
  readonly #processes: SessionProcesses;
  #server: ServerProcess | undefined;
  /** Resolves when the family of an earlier process has been stopped. */
  #ending: Promise<void> = Promise.resolve();
  #crashes = 0;
  /** Earliest time of the next start, by the monotonic clock. */
  #startNotBefore = 0;

  constructor(options: DriverOptions) {
    this.#options = options;
    this.#secrets = options.facts.hidden;
    this.#processes = new SessionProcesses(options.start, options.clock);
  }

  async run(request: TurnRequest, hooks: TurnHooks): Promise<Completion> {
    try {
      const message = requestOf(this.#options.facts, request, this.#options.clock);
      const server = await this.#ready(hooks);
      if (!server || hooks.signal.aborted) return stoppedBefore(hooks.signal);
      return await this.#ask(server, message.id, `${JSON.stringify(message)}\n`, hooks);
    } catch (error) {
      return failedBy(error, this.#secrets);
    }
  }

  stop(graceMs: number): Promise<void> {
    return this.#processes.stop(graceMs);
  }

  /** Returns a server that can be given a request; undefined when the turn is stopped first. */
  async #ready(hooks: TurnHooks): Promise<ServerProcess | undefined> {
    const { facts, flow, clock } = this.#options;
    const server = this.#server;
    if (server) {
      const survivors = await server.family.survivors();
      const leftovers = survivors.filter(({ pid }) => !server.own.has(pid));
      const mayStay = facts.agent.server?.leftovers === 'Allow';
      if (this.#server && (mayStay || leftovers.length === 0)) {
        server.own = new Set(survivors.map(({ pid }) => pid));
        return server;
      }
      if (this.#server) this.#giveUp(server, hooks, leftovers);
    }
    await this.#ending;
    await this.#backoff(hooks.signal);
    if (hooks.signal.aborted) return undefined;
    const family = await this.#processes.start(await this.#spec());
    const started = new ServerProcess(family, flow, clock, hooks);
    this.#server = started;
    void family.exited.then((exit) => this.#ended(started, exit));
    return started;
  }

  async #ask(server: ServerProcess, id: string, line: string, hooks: TurnHooks): Promise<Completion> {
    const { clock } = this.#options;
    const answered = server.ask(id, line, hooks);
    hooks.started(server.family.pid);
    const end = await firstOf(answered, server.family.exited, hooks.signal);
    hooks.collecting();
    if (end.by === 'answer') {
      this.#crashes = 0;
      const survivors = await server.settle();
      const ending = { exit: undefined, stopped: undefined, result: hooks.given() ?? end.answer };
      return this.#completion(hooks, ending, server, survivors);
    }
    let answer: Envelope | TurnFailure | undefined;
    void answered.then((value) => {
      answer = value;
    });
    if (end.by === 'stop') {
      this.#server = undefined;
      await stopFamily(server.family, end.reason.graceMs, clock);
    }
    await server.lastOutput();
    const exit = await server.family.exited;
    if (server.family.killing) await server.family.gone;
    const stopped = end.by === 'stop' ? end.reason : overran(server.family);
    const result = hooks.given() ?? answer;
    if (stopped || result) return this.#completion(hooks, { exit: undefined, stopped, result }, server);
    const completion = this.#completion(hooks, { exit, stopped, result }, server);
    const tail = hooks.log.errorTail();
    const message = [`the server ended before it answered: ${endedBy(exit)}`, tail].filter(Boolean).join('\n');
    return { ...(await completion), error: turnError('AgentFailed', message, this.#secrets) };
  }

  async #completion(
    hooks: TurnHooks,
    ending: { exit: Exit | undefined; stopped: StopReason | undefined; result: Envelope | TurnFailure | undefined },
    { family, own }: ServerProcess,
    settled?: Survivor[],
  ): Promise<Completion> {
    const survivors = settled ?? (await family.survivors());
    return {
      ...conclude({ ...ending, errorTail: hooks.log.errorTail(), secrets: this.#secrets }),
      leftRunning: redactedSurvivors(
        survivors.filter(({ pid }) => !own.has(pid)),
        this.#secrets.errors,
      ),
    };
  }

  /** Notes that the process ended by itself. The next start waits until no process of this one is left. */
  #ended(server: ServerProcess, exit: Exit): void {
    if (this.#server !== server) return;
    const { clock } = this.#options;
    this.#server = undefined;
    const wait = Math.min(FIRST_BACKOFF_MS * 2 ** this.#crashes, MAX_BACKOFF_MS);
    this.#crashes += 1;
    this.#startNotBefore = clock.monotonic() + wait;
    // Last output, and an answer that a child is still writing, can arrive after the process's end.
    this.#ending = server.lastOutput().then(() => {
      server.note(`[berth: the server ended: ${endedBy(exit)}; the next turn starts it again]\n`);
      return stopFamily(server.family, LEFTOVER_GRACE_MS, clock);
    });
  }

  /** Gives up the server because processes of an earlier turn are still running. */
  #giveUp(server: ServerProcess, hooks: TurnHooks, leftovers: Survivor[]): void {
    const running = redactedSurvivors(leftovers, this.#secrets.logs);
    const names = running.map(({ pid, command }) => `${pid} ${command}`).join(', ');
    const text = `[berth: the server is started again, as processes of an earlier turn still run: ${names}]\n`;
    hooks.log.stderr(Buffer.from(text));
    this.#server = undefined;
    this.#ending = stopFamily(server.family, LEFTOVER_GRACE_MS, this.#options.clock);
  }

  async #backoff(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const wait = this.#startNotBefore - clock.monotonic();
    if (wait > 0) await pause(clock, wait, signal);
  }

  async #spec(): Promise<ProcessSpec> {
    const { facts, directories, path } = this.#options;
    const { agent } = facts;
    const cwd = agent.workingDir ?? directories.work;
    remakeDirectories(directories);
    checkWorkingDirectory(cwd);
    const env = agentEnvironment(facts, directories, path, {
      BERTH_STATE_DIR: directories.state,
      BERTH_SESSION: facts.name,
    });
    const [program = '', ...fixed] = agent.command;
    const file = findProgram(program, env.PATH ?? path, cwd);
    const standard = standardVariables(facts, directories);
    const given = await argumentsOf(agent, directories.state);
    const expanded = given.map((arg) => expand(arg, standard));
    checkArguments(expanded);
    return { file, argv0: program, args: [...fixed, ...expanded], cwd, env };
  }
}

function firstOf(answered: Promise<Envelope | TurnFailure>, exited: Promise<Exit>, signal: AbortSignal): Promise<End> {
  return new Promise((resolve) => {
    const remove = onAbort(signal, () => resolve({ by: 'stop', reason: signal.reason as StopReason }));
    const finish = (end: End) => {
      remove();
      resolve(end);
    };
    void answered.then((answer) => finish({ by: 'answer', answer }));
    void exited.then((exit) => finish({ by: 'exit', exit }));
  });
}

function stoppedBefore(signal: AbortSignal): Completion {
  const { outcome, error } = signal.reason as StopReason;
  return { outcome, error, leftRunning: [] };
}
