import type { Outcome, Question, Result, TurnError } from '../frames/messages.ts';
import { withLostAsText } from '../json.ts';
import type { Reason } from '../resources/reasons.ts';
import type { Hidden } from '../text/hidden.ts';
import { redact } from '../text/redact.ts';
import { headOf } from '../text/utf8.ts';
import { checkMetadataSize, type Envelope } from './envelope.ts';
import { TurnFailure } from './failure.ts';
import { checkOutputSize, redactValue } from './output.ts';

const MAX_MESSAGE_BYTES = 4096;

/** What a turn came to; strings are redacted. */
export interface Conclusion
  extends Pick<
    Result,
    'outcome' | 'output' | 'error' | 'exitCode' | 'signal' | 'metadata' | 'turnCount' | 'redactions'
  > {
  /** Set where the agent succeeded in asking and the turn goes on with the decision. */
  asks?: Question;
}

/** How a process ended; its code is null when a signal ended it. */
interface Exit {
  code: number | null;
  signal: string | null;
}

export interface Ending {
  /** undefined when the process lives on. */
  exit: Exit | undefined;
  /** Set when the agent was stopped. What it said before stands in the result, but decides nothing. */
  stopped: { outcome: Outcome; error: TurnError } | undefined;
  /** The result, or why there is none. */
  result: Envelope | TurnFailure | undefined;
  /** The end of stderr, redacted. */
  errorTail: string;
  secrets: Hidden;
}

/** What a turn came to. An error envelope wins over the exit code; the exit code over a success envelope. */
export function conclude({ exit, stopped, result, errorTail, secrets }: Ending): Conclusion {
  const { kept, problem } = keep(result instanceof TurnFailure ? undefined : result, secrets);
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
  const envelope = result instanceof TurnFailure ? undefined : result;
  if (envelope?.status === 'error') {
    return fail('AgentFailed', envelope.error?.trim() || 'the agent reported an error without a message');
  }
  if (exit && exit.code !== 0) {
    const ended = endedBy(exit);
    const wrong = result instanceof TurnFailure ? `; ${result.message}` : '';
    return fail('AgentFailed', [ended + wrong, errorTail].filter(Boolean).join('\n'));
  }
  if (result instanceof TurnFailure) return fail(result.code, result.message);
  if (!envelope) return fail('MissingEnvelope', 'missing result envelope');
  if (problem) return fail(problem.code, problem.message);
  if (envelope.question) return { ...facts, outcome: 'Succeeded', asks: envelope.question };
  return { ...facts, outcome: 'Succeeded' };
}

/** How a process ended, in words. */
export function endedBy({ code, signal }: Exit): string {
  return code === null ? `killed by ${signal}` : `exit code ${code}`;
}

/** An error as it is returned: redacted, of bounded size. */
export function turnError(code: string, message: string, secrets: Hidden): TurnError {
  return { code, message: headOf(redact(message, secrets.errors), MAX_MESSAGE_BYTES) };
}

/** What of the result can be stored, redacted, and why not all of it. */
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
      // It has no place but the status, which rounds.
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
