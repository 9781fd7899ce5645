/** Errors of the client. No text of them has a token. */

interface Facts {
  cause?: unknown;
  sent?: boolean;
  status?: number | undefined;
  retryAfterMs?: number | undefined;
}

/** Any error of this package. An aborted call rejects with the reason of its signal instead. */
export class BerthError extends Error {
  override readonly name: string = 'BerthError';
  /** False if the server has surely not taken the request. */
  readonly sent: boolean;
  /** HTTP status of the answer, where there was one. */
  declare readonly status?: number;
  /** Wait that the answer asked for, milliseconds. */
  declare readonly retryAfterMs?: number;
  /** Idempotency-Key of the create that failed: a repeat with it makes nothing twice. */
  declare idempotencyKey?: string;

  constructor(message: string, { cause, sent = true, status, retryAfterMs }: Facts = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.sent = sent;
    if (status !== undefined) this.status = status;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

/** The options, the environment or an argument cannot be used. The text names which, and what to do. */
export class ConfigurationError extends BerthError {
  override readonly name: string = 'ConfigurationError';

  constructor(message: string, { cause }: { cause?: unknown } = {}) {
    super(message, { cause, sent: false });
  }
}

/** The connection was refused, cut or silent. */
export class ConnectionLost extends BerthError {
  override readonly name: string = 'ConnectionLost';
  /** True where another try cannot help: the certificate is refused. */
  readonly isFinal: boolean;

  constructor(message: string, { isFinal = false, ...facts }: { sent: boolean; isFinal?: boolean; cause?: unknown }) {
    super(message, facts);
    this.isFinal = isFinal;
  }
}

/** The deadline of the call has passed. `cause` is what the last try met. What was asked for may go on. */
export class DeadlineExceeded extends BerthError {
  override readonly name: string = 'DeadlineExceeded';
}

/** The answer is none of Berth's HTTP API: a proxy's page, a redirect, or another server. */
export class NotBerth extends BerthError {
  override readonly name: string = 'NotBerth';
}

/** The bytes that came of a content have another digest than the server told. */
export class ContentDamaged extends BerthError {
  override readonly name: string = 'ContentDamaged';
}

/** An output is larger than the option `maxOutputBytes`. */
export class OutputTooLarge extends BerthError {
  override readonly name: string = 'OutputTooLarge';
}

export interface FieldError {
  /** Path of the field, like `spec.agent.env[0].name`; or the name of a header or parameter. */
  field: string;
  message: string;
}

export interface ProblemFacts {
  status: number;
  code: string;
  detail: string;
  errors?: readonly FieldError[] | undefined;
  retryAfterMs?: number | undefined;
  requestId?: string | undefined;
}

/** A refusal of the HTTP API; there is a class for each `code`, and this one for codes of later releases. */
export class ProblemError extends BerthError {
  override readonly name: string;
  declare readonly status: number;
  /** Code for programs; its meaning never changes. */
  readonly code: string;
  /** Error, where it is, and what to do. */
  readonly detail: string;
  /** The fields that are wrong. */
  readonly fields: readonly FieldError[];
  /** Id of the request, as the log of the API has it. */
  readonly requestId: string | undefined;

  constructor({ status, code, detail, errors = [], retryAfterMs, requestId }: ProblemFacts, note = '') {
    super(detail + note, { status, retryAfterMs });
    this.name = code;
    this.code = code;
    this.detail = detail;
    this.fields = errors;
    this.requestId = requestId;
  }
}
