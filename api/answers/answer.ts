/** Answers of handlers and problems, as they are sent. */
import { STATUS_CODES } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { VERSION } from '../../core/program/version.ts';
import type { Problem } from '../problems/problems.ts';
import type { Answer } from '../route.ts';

/**
 * Bytes of a body that are given to the connection at once. Node says only when a piece has been taken as a whole, so
 * small pieces show that a slow reader still reads.
 */
const PIECE_BYTES = 64 * 1024;

/** Headers of every answer. `Berth-Version` is the release of the server, as in the OpenAPI document's `info.version`. */
export const COMMON_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'berth-version': VERSION,
};

export function send(reply: FastifyReply, answer: Answer): FastifyReply {
  const { status, body, stream, content, trailers = {}, headers = {} } = answer;
  // The connection is closed: the rest of a body that was not read would be taken for the next request.
  if (!isRead(reply)) reply.header('connection', 'close');
  const pieces = content ? exactly(content, headers['content-length']) : stream;
  for (const [name, value] of Object.entries(trailers)) reply.trailer(name, async () => value());
  if (pieces) return reply.code(status).headers(headers).send(Readable.from(pieces));
  if (body === undefined) return reply.code(status).headers(headers).send();
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  reply.code(status).headers({ 'content-type': 'application/json; charset=utf-8', ...headers });
  if (bytes.length <= PIECE_BYTES) return reply.send(bytes);
  return reply.header('content-length', bytes.length).send(Readable.from(cut(bytes)));
}

function* cut(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

/** Yields the content, and fails where it has another length than the header says. */
async function* exactly(content: AsyncIterable<Buffer>, length: string | undefined): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.length;
    if (length !== undefined && bytes > Number(length)) break;
    yield piece;
  }
  if (length !== undefined && bytes !== Number(length))
    throw new Error(`content of ${bytes} bytes; ${length} were told`);
}

const isRead = ({ request }: FastifyReply) => request.raw.complete;

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  // The connection is closed: the rest of the body is not worth reading.
  if (!isRead(reply)) reply.header('connection', 'close');
  return reply.code(problem.status).headers(headersOf(problem)).send(JSON.stringify(problem));
}

/** The problem as bytes of a connection, which has to be closed after them. */
export function asHttp(problem: Problem): string {
  const body = JSON.stringify(problem);
  const headers = {
    ...COMMON_HEADERS,
    ...headersOf(problem),
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`;
}

function headersOf({ status, retryAfterSeconds, headers }: Problem): Record<string, string> {
  return {
    'content-type': 'application/problem+json; charset=utf-8',
    ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
    ...headers,
  };
}
