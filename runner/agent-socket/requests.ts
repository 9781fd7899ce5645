import type { Decided, Question } from '../../core/frames/messages.ts';
import { parseExact } from '../../core/json.ts';
import { describe, isObject } from '../../core/result/describe.ts';
import { type Envelope, parseEnvelope } from '../../core/result/envelope.ts';
import { checkDepth, ENVELOPE_DEPTH } from '../../core/result/output.ts';
import { questionOf } from '../../core/result/question.ts';
import type { Hidden } from '../../core/text/hidden.ts';

/** Requests that a process of the session may send to the runner: docs/agents/socket.md. */
export type AgentRequest =
  | (OfTurn & { do: 'event'; event: unknown })
  | (OfTurn & { do: 'approve'; question: Question })
  | (OfTurn & { do: 'result'; result: Envelope })
  | { do: 'touch' };

interface OfTurn {
  /** Name of the turn whose process this is. Default: the turn that runs. */
  turn?: string | undefined;
}

/** Reply to a request, one line. */
export type AgentReply =
  | { ok: true; decision?: Decided['decision']; approval?: Decided }
  | { ok: false; error: { code: string; message: string } };

/** Parses the request in a line and redacts its question; or returns the problem with it. Never throws. */
export function readRequest(line: string, secrets: Hidden): AgentRequest | { problem: string } {
  let raw: unknown;
  try {
    raw = parseExact(line);
    checkDepth(raw, 'the request', ENVELOPE_DEPTH + 1);
  } catch (error) {
    return { problem: error instanceof SyntaxError ? 'the request is not one line of JSON' : (error as Error).message };
  }
  if (!isObject(raw)) return { problem: `the request must be an object; it is ${describe(raw)}` };
  const { turn } = raw;
  if (turn !== undefined && typeof turn !== 'string') {
    return { problem: `"turn" must be a string; it is ${describe(turn)}` };
  }
  switch (raw.do) {
    case 'touch':
      return { do: 'touch' };
    case 'event':
      return raw.event === undefined ? { problem: '"event" is absent' } : { do: 'event', turn, event: raw.event };
    case 'approve': {
      const question = questionOf(raw, secrets);
      return 'problem' in question ? question : { do: 'approve', turn, question };
    }
    case 'result':
      try {
        return { do: 'result', turn, result: parseEnvelope(JSON.stringify(raw.result ?? null), '"result"', secrets) };
      } catch (error) {
        return { problem: (error as Error).message };
      }
    default:
      return { problem: `"do" must be "event", "approve", "result" or "touch"; it is ${describe(raw.do)}` };
  }
}
