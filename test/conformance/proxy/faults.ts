/** What the proxy does to one exchange, and at which exchanges that can be done. */

/** An exchange as the proxy saw it. */
export interface Exchange {
  method: string;
  /** Path with the query. */
  path: string;
  /** HTTP status of the answer; 0 where none came. */
  status: number;
  /** Time until the head of the answer came, milliseconds; 0 where none came. */
  headMs: number;
  /** Content type of the answer. */
  type: string;
  /** Pieces in which the body came. */
  pieces: number;
  /** Bytes of the body as they went over the wire. */
  bytes: number;
  hasMultibyte: boolean;
}

const isStream = ({ type }: Exchange) => type.startsWith('text/event-stream');
const isFile = ({ method, path, status }: Exchange) =>
  method === 'GET' && /\/artifacts\/[^/?]+$/.test(path) && (status === 200 || status === 206);
const hasBody = ({ bytes }: Exchange) => bytes > 1;
const any = () => true;

/** What lasts at the server, or makes something there: the death of its process matters most then. */
const matters = (exchange: Exchange) =>
  isStream(exchange) ||
  isFile(exchange) ||
  exchange.path.includes('wait=') ||
  /\/(runs|turns|approvals)\?/.test(`${exchange.path}?`);

/** Faults by name, each with the exchanges at which it is possible. */
export const FAULTS = {
  /** No connection is taken for a moment before the exchange. */
  refuse: any,
  /** The connection ends before the request is forwarded. */
  close: any,
  /** The request is forwarded, and the connection ends in place of the answer. */
  lose: any,
  /** The connection ends within the head of the answer. */
  'cut-head': any,
  /** The connection ends within the first piece of the body. */
  'cut-body': hasBody,
  /** The connection ends within the third piece of the body. */
  'cut-later': (exchange: Exchange) => exchange.pieces >= 3,
  /** The connection ends within a character of several bytes. */
  'cut-character': (exchange: Exchange) => exchange.hasMultibyte,
  /** The connection ends within the id of the second event. */
  'cut-id': isStream,
  /** The request is not forwarded, and the connection stays open. */
  stall: any,
  /** The body stops within its first piece, and the connection stays open. */
  'stall-body': hasBody,
  /** The request is forwarded, and the answer comes when the client has given it up. */
  late: (exchange: Exchange) => !isStream(exchange),
  /** The server gets the request twice, as from a proxy that repeats it. The second of two deletes finds nothing, and that is its answer. */
  twice: (exchange: Exchange) => !isStream(exchange) && exchange.method !== 'DELETE',
  /** A proxy's page in place of an answer. */
  'html-502': any,
  'busy-503': any,
  'busy-503-after': any,
  'busy-429': any,
  'busy-429-after': any,
  /** This stream and the next two end well after their head. */
  'end-stream': isStream,
  /** One byte of the content is another, this once. */
  flip: isFile,
  /** The token of a list's further page has expired. */
  expired: ({ method, path }: Exchange) => method === 'GET' && path.includes('continue='),
  /** The client is told to give up when the request has come. */
  abort: any,
  /** The client is told to give up within the first piece of the body. */
  'abort-body': hasBody,
  /** The API's process is killed when the request has come, in a stream after its head, and started anew. */
  kill: matters,
} satisfies Record<string, (exchange: Exchange) => boolean>;

export type FaultName = keyof typeof FAULTS;

export interface Fault {
  name: FaultName;
  /** Number of the exchange in the order of arrival, from 0. */
  at: number;
}

/** Faults that are much the same for a client: an exchange gets one of each group, the next exchange the next one. */
export const ALIKE: readonly (readonly FaultName[])[] = [
  ['html-502', 'busy-503', 'busy-503-after', 'busy-429', 'busy-429-after'],
  ['lose', 'cut-head'],
];

/** Faults that a client notices by its own time limits alone. */
export const NEEDS_PATIENCE: readonly FaultName[] = ['stall', 'stall-body', 'late'];

/** Faults after which a scenario does not go on. */
export const CUT_SHORT: readonly FaultName[] = ['abort', 'abort-body'];

const problem = (status: number, code: string, headers: string) => {
  const body = JSON.stringify({ type: 'about:blank', title: code, status, code, detail: `A fault: ${code}.` });
  return `HTTP/1.1 ${status} Fault\r\ncontent-type: application/problem+json\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`;
};
const page = '<html><head><title>Bad Gateway</title></head></html>';

/** Answers that the proxy gives in place of the server. */
export const ANSWERS: Partial<Record<FaultName, string>> = {
  'html-502': `HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\ncontent-length: ${page.length}\r\n\r\n${page}`,
  'busy-503': problem(503, 'ShuttingDown', ''),
  'busy-503-after': problem(503, 'ShuttingDown', 'retry-after: 1\r\n'),
  'busy-429': problem(429, 'CallerLimit', ''),
  'busy-429-after': problem(429, 'CallerLimit', 'retry-after: 1\r\n'),
  expired: problem(410, 'ContinueExpired', ''),
};
