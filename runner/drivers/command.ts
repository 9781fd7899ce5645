import { conclude } from '../../core/result/conclude.ts';
import type { Hidden } from '../../core/text/hidden.ts';
import { redactedSurvivors } from '../process/survivors.ts';
import type { Completion, Driver, DriverOptions, StopReason, TurnHooks, TurnRequest } from './driver.ts';
import { failedBy } from './failed.ts';
import { requestOf } from './input.ts';
import { argumentsOf, type ProcessPlan, type ProcessRequest, planOnce, runOnce } from './once.ts';
import { SessionProcesses } from './session-processes.ts';

/** Driver with a fresh process per turn: the machine has all its resources back when the turn ends. */
export class CommandDriver implements Driver {
  readonly #options: DriverOptions;
  readonly #secrets: Hidden;
  readonly #processes: SessionProcesses;

  constructor(options: DriverOptions) {
    this.#options = options;
    this.#secrets = options.facts.hidden;
    this.#processes = new SessionProcesses(options.start, options.clock);
  }

  async run(request: TurnRequest, hooks: TurnHooks): Promise<Completion> {
    let plan: ProcessPlan | undefined;
    try {
      plan = planOnce(this.#options, await this.#processRequest(request), hooks, this.#secrets);
      if (hooks.signal.aborted) {
        const { outcome, error } = hooks.signal.reason as StopReason;
        return { outcome, error, leftRunning: [] };
      }
      return await this.#execute(plan, hooks);
    } catch (error) {
      return failedBy(error, this.#secrets);
    } finally {
      plan?.remove();
    }
  }

  stop(graceMs: number): Promise<void> {
    return this.#processes.stop(graceMs);
  }

  async #processRequest(request: TurnRequest): Promise<ProcessRequest> {
    const { facts, directories, clock } = this.#options;
    const { turn, approval } = request;
    return {
      command: facts.agent.command,
      args: await argumentsOf(facts.agent, directories.state),
      field: 'agent.command',
      input: turn.input,
      request: () => requestOf(facts, request, clock),
      variables: { BERTH_TURN: turn.name, ...(approval && { BERTH_APPROVAL: JSON.stringify(approval) }) },
    };
  }

  async #execute(plan: ProcessPlan, hooks: TurnHooks): Promise<Completion> {
    const { exit, stopped, result, family } = await runOnce(plan, this.#processes, this.#options, hooks);
    const errorTail = hooks.log.errorTail();
    const ending = { exit, stopped, result: hooks.given() ?? result, errorTail, secrets: this.#secrets };
    const leftRunning = await family.survivors();
    return {
      ...conclude(ending),
      leftRunning: redactedSurvivors(leftRunning, this.#secrets.errors),
    };
  }
}
