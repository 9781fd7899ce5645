import type { RequestVerb } from '../../core/kube/client.ts';
import { mayRetry } from '../../core/kube/retry.ts';
import type { Cli } from '../cli.ts';
import { type CliError, unreachable } from '../errors.ts';

/** Length of an outage after which stderr says so, milliseconds. A retry that succeeds before is not worth a line. */
const SAY_AFTER_MS = 2_000;
/** Length of an outage after which a command that waits or follows gives up, milliseconds. */
const PATIENCE_MS = 60_000;

/** Verbs that a node answers through the API server: its failure is not the cluster's. */
const OF_NODES: ReadonlySet<RequestVerb> = new Set(['log', 'attach', 'exec']);

/**
 * Outages of the cluster or the server, found from the outcome of every request and its retries. The beginning and the end
 * of each are said once on stderr.
 */
export class Outages implements Disposable {
  readonly #of: 'cluster' | 'server';
  readonly #cli: Pick<Cli, 'clock' | 'say'>;
  readonly #over = new AbortController();
  #wasAnswered = false;
  #present: { problem: string; isSaid: boolean; cancel(): void } | undefined;

  constructor(of: 'cluster' | 'server', cli: Pick<Cli, 'clock' | 'say'>) {
    this.#of = of;
    this.#cli = cli;
  }

  /** Aborted with an Unreachable error once an outage has lasted a minute. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** Error for the outage that lasts at present. */
  get present(): CliError | undefined {
    return this.#present && unreachable(`the ${this.#of} does not answer: ${this.#present.problem}`);
  }

  /** Notes the outcome of a request: its HTTP status, or the error that came instead of an answer. */
  note(outcome: number | Error, verb: RequestVerb = 'get'): void {
    if (typeof outcome !== 'number') {
      if (mayRetry(outcome, true)) this.#failed(outcome.message);
      return;
    }
    const isFailure = outcome === 429 || (outcome >= 500 && outcome !== 501);
    if (isFailure && OF_NODES.has(verb)) return;
    // A server that has just started may not know its clients yet. Before the first success 401 is the answer.
    if (isFailure || (outcome === 401 && this.#wasAnswered)) this.#failed(`HTTP status ${outcome}`);
    else this.#answered();
  }

  [Symbol.dispose](): void {
    this.#present?.cancel();
  }

  #failed(problem: string): void {
    if (this.#present) {
      this.#present.problem = problem;
      return;
    }
    const { clock, say } = this.#cli;
    const cancelSaying = clock.setTimer(SAY_AFTER_MS, () => {
      present.isSaid = true;
      say(`the ${this.#of} does not answer, trying again: ${present.problem}`);
    });
    const giveUp = clock.setTimer(PATIENCE_MS, () => {
      const words = `the ${this.#of} has not answered for ${PATIENCE_MS / 1000} s: ${present.problem}`;
      this.#over.abort(unreachable(words));
    });
    const cancel = () => {
      cancelSaying();
      giveUp();
    };
    const present = { problem, isSaid: false, cancel };
    this.#present = present;
  }

  #answered(): void {
    this.#wasAnswered = true;
    if (!this.#present) return;
    const { isSaid, cancel } = this.#present;
    cancel();
    this.#present = undefined;
    if (isSaid) this.#cli.say(`the ${this.#of} answers again`);
  }
}
