import { setImmediate } from 'node:timers/promises';
import { onAbort } from '../../core/abort.ts';
import type { ToolSpec } from '../../core/frames/messages.ts';
import { formatDuration } from '../../core/resources/duration.ts';
import { MAX_OUTPUT_BYTES } from '../../core/resources/limits.ts';
import { takesArguments } from '../../core/resources/tool-schema.ts';
import { conclude, turnError } from '../../core/result/conclude.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import { redactValue } from '../../core/result/output.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import { redact } from '../../core/text/redact.ts';
import { longTimer } from '../system/timers.ts';
import { PrefixLines } from '../text/lines.ts';
import { TurnLog } from '../text/log.ts';
import { PodText } from '../text/pod-text.ts';
import type { Completion, Driver, DriverOptions, StopReason, TurnHooks, TurnRequest } from './driver.ts';
import { failedBy } from './failed.ts';
import { requestOf } from './input.ts';
import { type ProcessRequest, planOnce, type Ran, runOnce } from './once.ts';
import { SessionProcesses } from './session-processes.ts';
import { type ToolCall, toolInput } from './tool-calls.ts';

/** Time from SIGTERM to SIGKILL when a tool runs too long, milliseconds. */
const TOOL_GRACE_MS = 1000;

/** Result of a call. A tool that fails has a result with the error; its turn does not fail. */
type ToolResult = { call_id: string; tool: string; duration_ms: number } & (
  | { status: 'success'; result: unknown; metadata?: Record<string, unknown> }
  | { status: 'error'; error: { code: string; message: string } }
);

type Outcome = { result: unknown; metadata?: Record<string, unknown> } | { error: { code: string; message: string } };

/** Driver that runs each call of a declared tool in a fresh process and leaves no process behind. */
export class ToolsDriver implements Driver {
  readonly #options: DriverOptions;
  readonly #secrets: Hidden;
  readonly #processes: SessionProcesses;
  readonly #tools: ReadonlyMap<string, ToolSpec>;
  /** Number of values hidden in the results of the turn's tools. */
  #redactions = 0;

  constructor(options: DriverOptions) {
    this.#options = options;
    this.#secrets = options.facts.hidden;
    this.#processes = new SessionProcesses(options.start, options.clock);
    this.#tools = new Map(options.facts.agent.tools?.map((tool) => [tool.name, tool]));
  }

  async run(request: TurnRequest, hooks: TurnHooks): Promise<Completion> {
    this.#redactions = 0;
    try {
      const input = toolInput(request.turn.input);
      // Whoever reads the result learns here that files are gone, not the tools alone.
      const restored = request.restored && { restored: request.restored };
      if ('list' in input) return succeeded({ tools: this.#list(input.list), ...restored });
      const results = await this.#callAll(input.calls, request, hooks);
      hooks.collecting();
      const output = { ...(input.one ? results[0] : { results }), ...restored };
      const redactions = this.#redactions > 0 && { redactions: this.#redactions };
      if (!hooks.signal.aborted) return { ...succeeded(output), ...redactions };
      const { outcome, error } = hooks.signal.reason as StopReason;
      return { outcome, error, output, ...redactions, leftRunning: [] };
    } catch (error) {
      return failedBy(error, this.#secrets);
    }
  }

  stop(graceMs: number): Promise<void> {
    return this.#processes.stop(graceMs);
  }

  /** Lists the tools whose name or description contains every word of the query. */
  #list(query: string): object[] {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    return [...this.#tools.values()]
      .filter(({ name, description }) => words.every((word) => `${name} ${description}`.toLowerCase().includes(word)))
      .map(({ name, description, parameters, timeoutMs }) => ({
        name,
        description,
        parameters,
        timeout_ms: timeoutMs,
      }));
  }

  /** Runs the calls, as many at once as the class allows, and returns the results in their order. */
  async #callAll(calls: ToolCall[], request: TurnRequest, hooks: TurnHooks): Promise<ToolResult[]> {
    const results: ToolResult[] = [];
    const started = onlyOnce(hooks.started);
    let next = 0;
    const serve = async () => {
      for (let i = next++; i < calls.length; i = next++) {
        const call = calls[i] as ToolCall;
        results[i] = await this.#call(call, request, { ...hooks, started }, calls.length);
      }
    };
    const { maxParallel = 1 } = this.#options.facts.agent;
    await Promise.all(Array.from({ length: Math.min(maxParallel, calls.length) }, serve));
    return results;
  }

  async #call(call: ToolCall, request: TurnRequest, hooks: TurnHooks, calls: number): Promise<ToolResult> {
    const { clock } = this.#options;
    const begin = clock.monotonic();
    const facts = { call_id: call.id, tool: call.tool };
    hooks.event({ type: 'event', event: 'tool.started', ...facts });
    const outcome = await this.#outcome(call, request, hooks, calls);
    const duration = Math.round(clock.monotonic() - begin);
    const status = 'error' in outcome ? ('error' as const) : ('success' as const);
    const code = 'error' in outcome && { code: outcome.error.code };
    hooks.event({ type: 'event', event: 'tool.finished', ...facts, status, ...code, duration_ms: duration });
    const redacted = redactValue(facts, this.#secrets.outputs, () => {
      this.#redactions += 1;
    }) as typeof facts;
    return { ...redacted, status, ...outcome, duration_ms: duration } as ToolResult;
  }

  async #outcome(call: ToolCall, request: TurnRequest, hooks: TurnHooks, calls: number): Promise<Outcome> {
    const tool = this.#tools.get(call.tool);
    if (!tool) return this.#failed('UnknownTool', `there is no tool "${call.tool}"; list_tools says which there are`);
    try {
      // The library is loaded here, so that other sessions need not load it.
      const { argumentsProblem } = await import('./tool-arguments.ts');
      // The runner answers between two checks, because each may take its time.
      await setImmediate();
      const problem = argumentsProblem(tool, call.args);
      if (problem) return this.#failed('InvalidArguments', problem);
      if (hooks.signal.aborted) return this.#failed('NotStarted', 'the turn was stopped before the tool was called');
      return await this.#execute(tool, call, request, hooks, calls);
    } catch (error) {
      // A failed call does not fail the other calls.
      const { code, message } =
        error instanceof TurnFailure ? error : { code: 'InternalError', message: String(error) };
      return this.#failed(code, message);
    }
  }

  async #execute(
    tool: ToolSpec,
    call: ToolCall,
    request: TurnRequest,
    hooks: TurnHooks,
    calls: number,
  ): Promise<Outcome> {
    const lines = new PrefixLines(`[${redact(call.id, this.#secrets.logs)}] `, (text) => hooks.log.lines(text));
    // Each call has a log of its own: concurrent writers must not split a secret that has to be found.
    const log = new TurnLog(this.#secrets, new PodText((text) => lines.push(text)));
    const limit = timeLimit(tool, hooks.signal, this.#options);
    const own: TurnHooks = {
      ...hooks,
      log,
      signal: limit.signal,
      collecting: () => {},
      event: (event) =>
        hooks.event({ type: 'event', event: 'tool.event', call_id: call.id, tool: tool.name, data: event }),
      started: (pid) => {
        limit.start();
        hooks.started(pid);
      },
    };
    const plan = planOnce(this.#options, this.#processRequest(tool, call, request), own, this.#secrets);
    try {
      const ran = await runOnce(plan, this.#processes, this.#options, own);
      // No process of a tool outlives its call.
      ran.family.kill();
      await ran.family.gone;
      const given = calls === 1 ? hooks.given() : undefined;
      return this.#conclude(tool, given ? { ...ran, result: given } : ran, log.errorTail(), calls);
    } finally {
      limit.end();
      plan.remove();
      log.flush();
      lines.end();
    }
  }

  #processRequest(tool: ToolSpec, call: ToolCall, request: TurnRequest): ProcessRequest {
    const { facts, clock } = this.#options;
    const { turn } = request;
    const { agent } = facts;
    const [program, ...args] = tool.command ?? [];
    const own = program !== undefined;
    const field = `agent.tools ${tool.name}: command`;
    const inputNeedless = !takesArguments(tool.parameters) && Object.keys(call.args).length === 0;
    const asked = { method: tool.method ?? tool.name, parameters: call.args };
    return {
      command: own ? [program] : agent.command,
      args: own ? args : agent.args,
      field: own ? field : 'agent.command',
      place: { ...(own ? { field, from: 1 } : { field: 'agent.args', from: 0 }), inputNeedless },
      input: call.args,
      request: () => {
        const { id, ...rest } = requestOf(facts, { ...request, turn: { ...turn, input: asked } }, clock);
        return { ...rest, id: `${id}-${call.id}`, input: call.args, tool: tool.name, call_id: call.id };
      },
      variables: { BERTH_TURN: turn.name },
    };
  }

  #conclude(tool: ToolSpec, ran: Ran, errorTail: string, calls: number): Outcome {
    const completion = conclude({ ...ran, errorTail, secrets: this.#secrets });
    const { outcome, error, output = null, metadata, asks, redactions = 0 } = completion;
    this.#redactions += redactions;
    if (ran.stopped) return this.#failed(ran.stopped.error.code, ran.stopped.error.message);
    if (asks) return this.#failed('ToolFailed', 'a tool cannot ask for an approval');
    if (outcome === 'Succeeded') {
      const bytes = Buffer.byteLength(JSON.stringify(output));
      const most = Math.floor(MAX_OUTPUT_BYTES / 2 / calls);
      if (calls > 1 && bytes > most) {
        return this.#failed('OutputTooLarge', `the result has ${bytes} bytes; one of ${calls} calls can have ${most}`);
      }
      return { result: output, ...(metadata && { metadata }) };
    }
    if (ran.exit.signal !== null) return this.#failed('ToolCrashed', crash(tool, ran.exit.signal, errorTail));
    return this.#failed(
      error?.code === 'AgentFailed' ? 'ToolFailed' : (error?.code ?? 'ToolFailed'),
      error?.message ?? '',
    );
  }

  #failed(code: string, message: string): Outcome {
    return { error: turnError(code, message, this.#secrets) };
  }
}

function succeeded(output: unknown): Completion {
  return { outcome: 'Succeeded', output, leftRunning: [] };
}

/** Describes the end by a signal that the runner did not send. */
function crash({ name }: ToolSpec, signal: string, errorTail: string): string {
  const why = signal === 'SIGKILL' ? ', most likely by the kernel for want of memory' : '';
  return [`tool ${name} was killed by ${signal}${why}`, errorTail].filter(Boolean).join('\n');
}

/** Combines the turn's signal and the tool's own timeout, counted from its start. */
function timeLimit(tool: ToolSpec, turn: AbortSignal, { clock }: Pick<DriverOptions, 'clock'>) {
  const { name, timeoutMs } = tool;
  const controller = new AbortController();
  const message = `tool ${name} ran longer than its timeout of ${formatDuration(timeoutMs)} and was stopped`;
  const error = { code: 'ToolTimedOut', message };
  const reason: StopReason = { outcome: 'TimedOut', error, graceMs: TOOL_GRACE_MS };
  const remove = onAbort(turn, () => controller.abort(turn.reason));
  let cancel = () => {};
  return {
    signal: controller.signal,
    start: () => {
      cancel = longTimer(clock, timeoutMs, () => controller.abort(reason));
    },
    end: () => {
      cancel();
      remove();
    },
  };
}

/** Calls `fn` once only: the turn begins with its first process. */
function onlyOnce(fn: (pid: number) => void): (pid: number) => void {
  let done = false;
  return (pid) => {
    if (!done) fn(pid);
    done = true;
  };
}
