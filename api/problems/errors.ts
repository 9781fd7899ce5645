/** Converts errors to the problem that the client gets. */
import type * as z from 'zod';
import { EnterError } from '../../core/enter/client.ts';
import type { EnterCode } from '../../core/enter/hello.ts';
import { ApiError, isOverQuota, isTooLarge, TransportError } from '../../core/kube/errors.ts';
import { StoreCorruptError, StoreMissingError } from '../../core/store/store.ts';
import { type FieldError, Problem, type ProblemCode } from './problems.ts';
import { inWords } from './schema-words.ts';

/** Never throws. An unknown error becomes `Internal` without its text, which belongs in the log. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof ApiError) return fromCluster(error);
  if (error instanceof EnterError) return fromSession(error);
  if (error instanceof TransportError) {
    return new Problem('ClusterUnavailable', `${error.message}. Try again; give an Idempotency-Key when you create.`, {
      retryAfterSeconds: 1,
    });
  }
  if (error instanceof StoreMissingError || error instanceof StoreCorruptError) {
    return new Problem('StoredDataMissing', error.message);
  }
  return fromFastify(error) ?? new Problem('Internal', 'The server has a fault; its log has the details.');
}

const ENTER_CODES: Partial<Record<EnterCode, ProblemCode>> = {
  Unsupported: 'EnterUnsupported',
  Conflict: 'CommandConflict',
};

function fromSession({ code, message, field }: EnterError): Problem {
  const again = code === 'NotReady' || code === 'Busy' || code === 'TooManyCommands' || code === 'TooManyConnections';
  return new Problem(ENTER_CODES[code] ?? (code as ProblemCode), `${message[0]?.toUpperCase()}${message.slice(1)}.`, {
    ...(field === undefined ? {} : { fields: [{ field, message }] }),
    ...(again ? { retryAfterSeconds: 1 } : {}),
  });
}

function fromCluster(error: ApiError): Problem {
  const { code, reason, status, retryAfterMs } = error;
  const fields = (status.details?.causes ?? []).map(({ field, message }) => ({
    field: field ?? '',
    message: message ?? '',
  }));
  const retryAfterSeconds = Math.ceil((retryAfterMs ?? 1000) / 1000);
  if (isOverQuota(error)) {
    return new Problem('QuotaExceeded', `${error.message}. Delete what is no longer needed, or have the quota raised.`);
  }
  if (code === 403) return new Problem('Forbidden', `The cluster refused it: ${error.message}`);
  if (code === 404) return new Problem('NotFound', error.message);
  if (code === 409 && reason === 'AlreadyExists') return new Problem('AlreadyExists', error.message);
  if (code === 409) return new Problem('Conflict', `${error.message}. Read the object and try again.`);
  if (isTooLarge(error)) return new Problem('BodyTooLarge', error.message);
  if (code === 400 || code === 422) return new Problem('Invalid', error.message, { fields });
  return new Problem('ClusterUnavailable', `The Kubernetes API answered: ${error.message}. Try again.`, {
    retryAfterSeconds,
  });
}

const FASTIFY: Record<string, [ProblemCode, string]> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [
    'BodyTooLarge',
    'The body has more than 1 MiB. Put large data where the agent can fetch it.',
  ],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['UnsupportedMediaType', 'Send JSON with the header Content-Type: application/json.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['InvalidJson', 'The body is not as long as its Content-Length says.'],
  FST_ERR_MAX_PARAM_LENGTH: ['InvalidParameter', 'A part of the path is longer than any name may be.'],
  FST_ERR_BAD_URL: ['InvalidParameter', 'The path is not a valid URL path; percent-encode what is special in it.'],
};

function fromFastify(error: unknown): Problem | undefined {
  const known = FASTIFY[(error as { code?: string } | undefined)?.code ?? ''];
  return known && new Problem(...known);
}

/** Converts zod's issues to one entry per field. */
export function fieldErrors(error: z.ZodError, place: 'Body' | 'Parameter' = 'Body'): FieldError[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({
        field: pathText([...issue.path, key]),
        message: 'there is no such field; remove it (GET /openapi.json lists the fields)',
      }));
    }
    return [{ field: pathText(issue.path), message: inWords(issue, place) }];
  });
}

function pathText(path: readonly PropertyKey[]): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else text += text === '' ? String(step) : `.${String(step)}`;
  }
  return text;
}

/** Problem of a body, query, path or header that does not fit its schema. */
export function invalid(code: 'Invalid' | 'InvalidParameter', error: z.ZodError): Problem {
  const fields = fieldErrors(error, code === 'InvalidParameter' ? 'Parameter' : 'Body');
  const detail = fields.map(({ field, message }) => (field ? `${field}: ${message}` : message)).join('; ');
  return new Problem(code, detail, { fields });
}
