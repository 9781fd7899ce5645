import { EnterError } from '../../core/enter/client.ts';
import { ENTER_CODES } from '../../core/enter/hello.ts';
import { ApiError, TransportError } from '../../core/kube/errors.ts';

/** The answer of a server of the HTTP API other than success; `reason` is the problem's code. */
export class ServerError extends ApiError {
  override readonly name = 'ServerError';
}

/** The server of the HTTP API gave no answer. */
export class ServerUnreachable extends TransportError {
  override readonly name = 'ServerUnreachable';
}

interface ProblemBody {
  code: string;
  detail: string;
  errors?: { field: string; message: string }[];
}

/** Converts a problem+json; undefined for anything else. */
export function serverError(status: number, body: string, retryAfterMs: number | undefined): ServerError | undefined {
  let problem: Partial<ProblemBody>;
  try {
    problem = JSON.parse(body);
  } catch {
    return undefined;
  }
  const { code, detail, errors } = problem ?? {};
  if (typeof code !== 'string' || typeof detail !== 'string') return undefined;
  const causes = Array.isArray(errors) ? errors : [];
  return new ServerError({ code: status, reason: code, message: detail, details: { causes } }, retryAfterMs);
}

/** Codes of problems that stand for another refusal of a session. */
const OTHER_CODES: Record<string, string> = { EnterUnsupported: 'Unsupported', CommandConflict: 'Conflict' };

/** Returns the refusal of a session that a problem stands for, in the session's own words; undefined for other problems. */
export function refusalOf(problem: string, text: string): EnterError | undefined {
  const code = ENTER_CODES.find((known) => known === (OTHER_CODES[problem] ?? problem));
  // The server makes a sentence of what the session says.
  return (
    code && new EnterError({ code, message: text.replace(/^[A-Z]/, (first) => first.toLowerCase()).replace(/\.$/, '') })
  );
}

/** Resolves or rejects as `ask` does, but with an EnterError where the session refuses. */
export async function asRefusal<R>(ask: () => Promise<R>): Promise<R> {
  try {
    return await ask();
  } catch (error) {
    throw (error instanceof ServerError && refusalOf(error.reason, error.message)) || error;
  }
}
