import { type BerthError, NotBerth, ProblemError, type ProblemFacts } from './errors.ts';
import { PROBLEMS } from './generated/problems.ts';
import { RELEASE } from './generated/release.ts';
import type { Answer } from './http.ts';

/** Header of every answer with the release of the API. */
export const RELEASE_HEADER = 'berth-version';

const MAX_BYTES = 64 * 1024;

/** The part of an answer that says why it is none of success. */
export type Refusal = Pick<Answer, 'status' | 'headers' | 'bytes'>;

/** Returns the error for an answer other than success, and reads its body. Rejects with a ConnectionLost where the body is cut. */
export async function refusalOf(answer: Refusal, what: string): Promise<BerthError> {
  const { status, headers } = answer;
  const retryAfterMs = retryAfter(headers.get('retry-after'));
  const tooLarge = () => notBerth(answer, what, '', retryAfterMs);
  const text = new TextDecoder().decode(await answer.bytes(MAX_BYTES, tooLarge));
  const facts = problemIn(text);
  if (!facts) return notBerth(answer, what, text, retryAfterMs);
  const requestId = headers.get('x-request-id') ?? undefined;
  const Class = (PROBLEMS as Record<string, typeof ProblemError>)[facts.code] ?? ProblemError;
  return new Class({ ...facts, status, retryAfterMs, requestId }, otherRelease(headers, status));
}

/** Returns the error for an object that was deleted, and whose name another has now. */
export function replaced(kind: 'Session' | 'Turn', name: string): ProblemError {
  const detail = `${kind} "${name}" was deleted; another one has its name now.`;
  return new PROBLEMS.UIDMismatch({ status: 409, code: 'UIDMismatch', detail });
}

/** Returns the error for an answer that is not as the HTTP API gives it. */
export function notBerth(
  answer: Pick<Answer, 'status' | 'headers'>,
  what: string,
  text: string,
  retryAfterMs?: number,
): NotBerth {
  const { status, headers } = answer;
  const type = headers.get('content-type') ?? 'no content type';
  const title = /<title>\s*([^<]{1,80})/i.exec(text)?.[1]?.trim();
  const page = title === undefined ? type : `${type}, "${title}"`;
  const message = `${what}: ${status} with ${page} is no answer of Berth's HTTP API; the URL of a server is what stands before /v1, and a proxy may have answered in its place`;
  return new NotBerth(message + otherRelease(headers), { status, retryAfterMs });
}

/** Says both releases where they differ: for an answer that cannot be read, or a request that the API does not know. */
function otherRelease(headers: Answer['headers'], status?: number): string {
  const release = headers.get(RELEASE_HEADER);
  const mayBeWhy = status === undefined || [400, 404, 405, 422].includes(status);
  return release === null || release === RELEASE || !mayBeWhy
    ? ''
    : ` (the API is of release ${release}, this client of ${RELEASE})`;
}

function problemIn(text: string): Pick<ProblemFacts, 'code' | 'detail' | 'errors'> | undefined {
  try {
    const { code, detail, errors } = (JSON.parse(text) ?? {}) as Partial<ProblemFacts>;
    if (typeof code !== 'string' || typeof detail !== 'string') return undefined;
    return { code, detail, errors: Array.isArray(errors) ? errors : undefined };
  } catch {
    return undefined;
  }
}

/** Milliseconds that a Retry-After asks to wait: seconds, or a date. */
function retryAfter(text: string | null): number | undefined {
  if (text === null) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
