import type { Question } from '../frames/messages.ts';
import { withLostAsText } from '../json.ts';
import { jsonBytes, MAX_PAYLOAD_BYTES, MAX_PROMPT_BYTES } from '../resources/limits.ts';
import type { Hidden } from '../text/hidden.ts';
import { redact } from '../text/redact.ts';
import { describe } from './describe.ts';
import { checkDepth, redactValue } from './output.ts';

/** Returns an agent's question, redacted; or the problem with it, naming the field. */
export function questionOf(
  { prompt, payload }: { prompt?: unknown; payload?: unknown },
  secrets: Hidden,
): Question | { problem: string } {
  if (typeof prompt !== 'string') return { problem: `"prompt" must be a string; it is ${describe(prompt)}` };
  if (prompt.trim() === '') return { problem: '"prompt" is empty; it must say what is asked' };
  let redactions = 0;
  const onHidden = () => {
    redactions += 1;
  };
  const question: Question = { prompt: redact(prompt, secrets.outputs, onHidden) };
  const length = Buffer.byteLength(question.prompt);
  if (length > MAX_PROMPT_BYTES) {
    return {
      problem: `"prompt" has ${length} bytes; at most ${MAX_PROMPT_BYTES} can be shown. Put the rest in "payload"`,
    };
  }
  if (payload === undefined) return counted(question, redactions);
  try {
    checkDepth(payload, '"payload"');
  } catch (error) {
    return { problem: (error as Error).message };
  }
  // Lost numbers become text, because the payload is shown in the status, and the API server rounds numbers there.
  question.payload = withLostAsText(redactValue(payload, secrets.outputs, onHidden));
  const bytes = jsonBytes(question.payload);
  if (bytes > MAX_PAYLOAD_BYTES) {
    return { problem: `"payload" has ${bytes} bytes as JSON; at most ${MAX_PAYLOAD_BYTES} can be shown` };
  }
  return counted(question, redactions);
}

function counted(question: Question, redactions: number): Question {
  return redactions > 0 ? { ...question, redactions } : question;
}
