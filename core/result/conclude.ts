import type { Outcome, Question, Result, TurnError } from '../frames/messages.ts';
import { withLostAsText } from '../json.ts';
import type { Reason } from '../resources/reasons.ts';
import type { Hidden } from '../text/hidden.ts';
import { redact } from '../text/redact.ts';
import { headOf } from '../text/utf8.ts';
import { checkMetadataSize, type Envelope } from './envelope.ts';
import { TurnFailure } from './failure.ts';
import { NoResult } from './no-result.ts';
import { checkOutputSize, redactValue } from './output.ts';

const MAX_MESSAGE_BYTES = 4096;

/** Outcome of a turn; strings are redacted. */
export interface Conclusion
  extends Pick<
    Result,
    'outcome' | 'output' | 'error' | 'exitCode' | 'signal' | 'metadata' | 'turnCount' | 'redactions'
  > {
  /** The agent's question, if it asked successfully: the turn continues with the decision. */
  asks?: Question;
}

/** End of a process; `code` is null when a signal ended it. */
interface Exit {
  code: number | null;
  signal: string | null;
}

export interface Ending {
  /** How the process ended; undefined while it runs. */
  exit: Exit | undefined;
  /** Reason why the agent was stopped, if it was. Its earlier output stays in the result, but does not decide the outcome. */
  stopped: { outcome: Outcome; error: TurnError } | undefined;
  /** The result, or the reason why there is none; undefined if the driver reads none. */
  result: Envelope | TurnFailure | NoResult | undefined;
  /** The end of stderr, redacted. */
  errorTail: string;
  secrets: Hidden;
}

/**
 * Decides the outcome of a turn. An error envelope wins over the exit code; the exit code wins over a success envelope.
 */
export function conclude({ exit, stopped, result, errorTail, secrets }: Ending): Conclusion {
  const envelope = result instanceof TurnFailure || result instanceof NoResult ? undefined : result;
  const { kept, problem } = keep(envelope, secrets);
  const facts = {
    ...kept,
    ...(typeof exit?.code === 'number' && { exitCode: exit.code }),
    ...(typeof exit?.signal === 'string' && { signal: exit.signal }),
  };
  if (stopped) return { ...facts, outcome: stopped.outcome, error: stopped.error };
  const fail = (code: Reason, message: string) => ({
    ...facts,
    outcome: 'Failed' as const,
    error: turnError(code, message, secrets),
  });
  if (envelope?.status === 'error') {
    return fail('AgentFailed', envelope.error?.trim() || 'the agent reported an error without a message');
  }
  if (exit && exit.code !== 0) {
    const ended = endedBy(exit);
    const wrong = result instanceof TurnFailure ? result.message : result instanceof NoResult && result.found;
    return fail('AgentFailed', [wrong ? `${ended}; ${wrong}` : ended, errorTail].filter(Boolean).join('\n'));
  }
  const failure = result instanceof NoResult ? result.failure(exit && endedBy(exit)) : result;
  if (failure instanceof TurnFailure) {
    const { code, message, advice } = failure;
    return fail(code, advice === undefined ? message : `${message}. ${advice}`);
  }
  if (!envelope) return fail('MissingEnvelope', 'the program ended without a result');
  if (problem) return fail(problem.code, problem.message);
  if (envelope.question) return { ...facts, outcome: 'Succeeded', asks: envelope.question };
  return { ...facts, outcome: 'Succeeded' };
}

/** Describes the end of a process in words. */
export function endedBy({ code, signal }: Exit): string {
  return code === null ? `killed by ${signal}` : `exit code ${code}`;
}

/** Makes an error for a result: redacted, and of bounded size. */
export function turnError(code: string, message: string, secrets: Hidden): TurnError {
  return { code, message: headOf(redact(message, secrets.errors), MAX_MESSAGE_BYTES) };
}

/** Returns the part of the result that can be stored, redacted, and the reason why the rest cannot. */
function keep(envelope: Envelope | undefined, secrets: Hidden) {
  const kept: Pick<Conclusion, 'output' | 'metadata' | 'turnCount' | 'redactions'> = {};
  let problem: TurnFailure | undefined;
  let redactions = 0;
  const onHidden = () => {
    redactions += 1;
  };
  const attempt = (fn: () => void) => {
    try {
      fn();
    } catch (error) {
      if (!(error instanceof TurnFailure)) throw error;
      problem ??= error;
    }
  };
  if (envelope?.turnCount !== undefined) kept.turnCount = envelope.turnCount;
  if (envelope?.output !== undefined) {
    attempt(() => {
      const output = redactValue(envelope.output, secrets.outputs, onHidden);
      checkOutputSize(output);
      kept.output = output;
    });
  }
  if (envelope?.metadata) {
    attempt(() => {
      // Lost numbers become text, because metadata is stored in the status only, and the API server rounds numbers
      // there.
      const metadata = withLostAsText(redactValue(envelope.metadata, secrets.outputs, onHidden)) as Record<
        string,
        unknown
      >;
      checkMetadataSize(metadata);
      kept.metadata = metadata;
    });
  }
  if (redactions > 0) kept.redactions = redactions;
  return { kept, problem };
}
