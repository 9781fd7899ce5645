import type { TurnError } from '../../core/frames/messages.ts';
import type { Reason } from '../../core/resources/reasons.ts';
import { TurnFailure } from '../errors.ts';
import type { Exit } from '../process/contained.ts';
import { redact } from '../text/redact.ts';
import { headOf } from '../text/utf8.ts';
import type { Completion, StopReason } from './driver.ts';
import { checkMetadataSize, type Envelope } from './envelope.ts';
import { checkOutputSize, redactValue } from './output.ts';

const MAX_MESSAGE_BYTES = 4096;

export interface Ending {
  exit: Exit;
  /** Set when the agent was stopped. What it said before stands in the result, but decides nothing. */
  stopped: StopReason | undefined;
  /** The result, or why there is none. */
  result: Envelope | TurnFailure | undefined;
  /** The end of stderr, redacted. */
  errorTail: string;
  secrets: readonly string[];
}

/** What a turn came to. An error envelope wins over the exit code; the exit code over a success envelope. */
export function conclude({ exit, stopped, result, errorTail, secrets }: Ending): Omit<Completion, 'leftRunning'> {
  const { kept, problem } = keep(result instanceof TurnFailure ? undefined : result, secrets);
  const facts = {
    ...kept,
    ...(exit.code !== null && { exitCode: exit.code }),
    ...(exit.signal !== null && { signal: exit.signal }),
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
  if (exit.code !== 0) {
    const ended = exit.code === null ? `killed by ${exit.signal}` : `exit code ${exit.code}`;
    const wrong = result instanceof TurnFailure ? `; ${result.message}` : '';
    return fail('AgentFailed', [ended + wrong, errorTail].filter(Boolean).join('\n'));
  }
  if (result instanceof TurnFailure) return fail(result.code, result.message);
  if (!envelope) return fail('MissingEnvelope', 'missing result envelope');
  if (problem) return fail(problem.code, problem.message);
  return { ...facts, outcome: 'Succeeded' };
}

/** An error as it is returned: redacted, of bounded size. */
export function turnError(code: string, message: string, secrets: readonly string[]): TurnError {
  return { code, message: headOf(redact(message, secrets), MAX_MESSAGE_BYTES) };
}

/** What of the result can be stored, redacted, and why not all of it. */
function keep(envelope: Envelope | undefined, secrets: readonly string[]) {
  const kept: Pick<Completion, 'output' | 'metadata' | 'turnCount'> = {};
  let problem: TurnFailure | undefined;
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
      const output = redactValue(envelope.output, secrets);
      checkOutputSize(output);
      kept.output = output;
    });
  }
  if (envelope?.metadata) {
    attempt(() => {
      const metadata = redactValue(envelope.metadata, secrets) as Record<string, unknown>;
      checkMetadataSize(metadata);
      kept.metadata = metadata;
    });
  }
  return { kept, problem };
}
