import { ConnectionLost, DeadlineExceeded, NotBerth, ProblemError } from '../../clients/typescript/src/errors.ts';
import { EnterError } from '../../core/enter/client.ts';
import { ENTER_CODES } from '../../core/enter/hello.ts';
import { ApiError, TransportError } from '../../core/kube/errors.ts';
import { unreachable } from '../errors.ts';

/** The answer of a server of the HTTP API other than success; `reason` is the problem's code. */
export class ServerError extends ApiError {
  override readonly name = 'ServerError';
}

/** The server of the HTTP API gave no answer. */
export class ServerUnreachable extends TransportError {
  override readonly name = 'ServerUnreachable';
}

/** Returns what the command line throws for an error of the client or the transport; others are as they were. `server`: its URL, for messages. */
export function ownError(error: unknown, server: string): unknown {
  if (error instanceof DeadlineExceeded && error.cause !== undefined) return ownError(error.cause, server);
  if (error instanceof ProblemError) {
    const { status, code: reason, detail: message, fields, retryAfterMs } = error;
    return new ServerError({ code: status, reason, message, details: { causes: [...fields] } }, retryAfterMs);
  }
  if (error instanceof ConnectionLost) {
    // The transport's own text says where the connection was to go.
    return error.cause instanceof TransportError ? unreached(error.cause) : unreached(error);
  }
  if (error instanceof TransportError && !(error instanceof ServerUnreachable)) return unreached(error);
  return error instanceof NotBerth ? notBerth(error, server) : error;
}

const unreached = ({ message, cause, sent }: TransportError | ConnectionLost) =>
  new ServerUnreachable(message, { cause, sent });

function notBerth({ message, status, retryAfterMs, cause }: NotBerth, server: string): Error {
  // JSON that cannot be read is an answer that was cut or damaged on its way.
  if (cause !== undefined) return new ServerUnreachable(message, { cause });
  if (status === undefined) return unreachable(`${server} is not Berth's HTTP API: ${message}`);
  // A proxy before the server answers like this while the server is not there.
  if (status === 429 || status >= 500) {
    return new ServerError(
      { code: status, reason: 'ProxyError', message: `${server} answered ${status}` },
      retryAfterMs,
    );
  }
  return unreachable(
    `${server} is not Berth's HTTP API: it answered ${status} with something else; --server is the URL before /v1`,
  );
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
