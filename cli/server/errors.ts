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
