/** Errors of the API: problem+json (RFC 9457) with a stable `code`. */
import * as z from 'zod';

/** Status and title per code. Codes are only ever added. */
export const PROBLEMS = {
  Unauthenticated: [401, 'The bearer token is missing or not valid here.'],
  Forbidden: [403, 'The caller may not do this.'],
  QuotaExceeded: [403, 'A ResourceQuota of the namespace has no room for it.'],
  NotFound: [404, 'There is no such object or page.'],
  NamespaceNotServed: [404, 'This installation does not serve the namespace.'],
  MethodNotAllowed: [405, 'The page exists, the method does not.'],
  MalformedRequest: [400, 'The bytes are no valid HTTP request.'],
  RequestTimeout: [408, 'The request did not come in time.'],
  HeadersTooLarge: [431, 'The headers are too large.'],
  UpgradeRequired: [426, 'The page is a WebSocket.'],
  ExpectationFailed: [417, 'The header Expect asks for what the server does not do.'],
  InvalidJson: [400, 'The body is no JSON.'],
  InvalidParameter: [400, 'A part of the URL or a header is not valid.'],
  BodyTooLarge: [413, 'The body is too large.'],
  UnsupportedMediaType: [415, 'The body is not uncompressed JSON in UTF-8.'],
  ContinueExpired: [410, 'The list has changed too much to be continued.'],
  Invalid: [422, 'The body is not valid.'],
  NumberNotExact: [422, 'A number cannot be kept exactly.'],
  TextNotUnicode: [422, 'A text has half of a surrogate pair.'],
  InputMissing: [422, 'The agent needs an input, and there is none.'],
  InputTooLarge: [422, 'The input is too large.'],
  InputTooDeep: [422, 'The input, or the response to a request, is nested too deep.'],
  ResponseTooLarge: [422, 'The response is too large.'],
  ClassNotFound: [422, 'The SessionClass does not exist.'],
  NotAllowed: [422, 'The SessionClass does not allow it.'],
  IdempotencyKeyReused: [422, 'The Idempotency-Key was used with another request.'],
  AlreadyExists: [409, 'An object of this name exists.'],
  Gone: [409, 'The object that the Idempotency-Key has created was deleted.'],
  Conflict: [409, 'The object has changed meanwhile.'],
  UIDMismatch: [409, 'The object of this name has another UID than the one given.'],
  SessionTerminating: [409, 'The session is being deleted.'],
  SessionFinished: [409, 'The session is finished.'],
  SessionTakesOneTurn: [409, 'The session takes one turn only.'],
  AlreadyDecided: [409, 'Another decision on the request was first.'],
  SelfApproval: [403, 'The class lets nobody decide on the requests of their own turns.'],
  RequestNotPending: [409, 'The turn does not wait for a decision on this request.'],
  TurnNotFinished: [409, 'The turn has not ended.'],
  NoOutput: [404, 'The turn has no output.'],
  NoLog: [404, 'There is no log.'],
  NoArtifact: [404, 'The turn has no such artifact.'],
  RangeNotSatisfiable: [416, 'The range lies beyond the end of the content.'],
  EnterDisabled: [403, 'The installation lets no client into running sessions.'],
  EnterUnsupported: [409, 'Nobody can enter this session.'],
  NotReady: [409, 'The session has no pod that can be entered yet.'],
  Suspended: [409, 'The session is suspended.'],
  Stopping: [409, 'The session has ended, or its pod is about to.'],
  PodReplaced: [409, 'The session has got another pod.'],
  CommandNotFound: [404, 'There is no such command.'],
  CommandLost: [410, 'The command is gone with its pod.'],
  OutputLost: [410, 'The output of the command is kept no more from this position on.'],
  CommandFailed: [422, 'The command cannot be started.'],
  CommandConflict: [409, 'The id of the command is that of another one.'],
  TooManyCommands: [429, 'The session runs as many commands as it may.'],
  TooManyConnections: [429, 'The session has as many connections as it may.'],
  FileNotFound: [404, 'There is no such file.'],
  NotAFile: [409, 'The path is not that of a file.'],
  NotAFolder: [409, 'The path is not that of a folder.'],
  OutsideRoot: [403, 'The path leads out of its root.'],
  FileChanged: [409, 'The file changed while it was read.'],
  PortRefused: [502, 'Nothing answers on the port of the session.'],
  PortFailed: [502, 'The connection to the port of the session has failed.'],
  FileFailed: [502, 'The file cannot be read or written.'],
  NotWritable: [403, 'The place cannot be written to.'],
  NoSpace: [507, 'The session has no space left for the file.'],
  StateTooLarge: [413, 'The state of the session would be larger than it may be.'],
  ContentMismatch: [422, 'The bytes that came are not those that were told.'],
  Busy: [503, 'The session packs its state for too long.'],
  StoredDataMissing: [502, 'Stored data is missing or damaged.'],
  TooManyRequests: [429, 'The caller sends too many requests.'],
  CallerLimit: [429, 'The caller has as many requests under way as one caller may have.'],
  Overloaded: [503, 'Too many requests at once.'],
  ClusterUnavailable: [503, 'The Kubernetes API does not answer.'],
  ShuttingDown: [503, 'The server is being stopped.'],
  Internal: [500, 'The server has a fault.'],
} as const satisfies Record<string, readonly [number, string]>;

export type ProblemCode = keyof typeof PROBLEMS;

export interface FieldError {
  /** Path of the field, like `spec.agent.env[0].name`; or the name of a header or parameter. */
  field: string;
  message: string;
}

/** Error answer. `detail` says what was wrong, where, and what to do. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly status: number;
  readonly fields: FieldError[];
  readonly retryAfterSeconds: number | undefined;
  /** Headers of the answer, beside Retry-After. */
  readonly headers: Record<string, string>;

  constructor(
    code: ProblemCode,
    detail: string,
    more: { fields?: FieldError[]; retryAfterSeconds?: number; headers?: Record<string, string> } = {},
  ) {
    super(detail);
    this.name = 'Problem';
    this.code = code;
    this.status = PROBLEMS[code][0];
    this.fields = more.fields ?? [];
    this.retryAfterSeconds = more.retryAfterSeconds;
    this.headers = more.headers ?? {};
  }

  /** Returns the body of the answer. */
  toJSON(): z.infer<typeof problemSchema> {
    return {
      type: `urn:berth:problem:${this.code}`,
      title: PROBLEMS[this.code][1],
      status: this.status,
      code: this.code,
      detail: this.message,
      ...(this.fields.length > 0 ? { errors: this.fields } : {}),
    };
  }
}

const codes = Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]];

export const problemSchema = z
  .strictObject({
    type: z.string(),
    title: z.string().describe('Kind of problem; the same for all problems with this code.'),
    status: z.int(),
    code: z.enum(codes).describe('Code for programs; its meaning never changes.'),
    detail: z.string().describe('Error, where it is, and what to do.'),
    errors: z
      .array(z.strictObject({ field: z.string(), message: z.string() }))
      .optional()
      .describe('The fields that are wrong.'),
  })
  .describe('An answer other than success, as application/problem+json.');
