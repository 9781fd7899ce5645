/** The server of Node below Fastify: its time limits, TLS, and what its parser refuses. */
import {
  createServer,
  type IncomingMessage,
  METHODS,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asHttp, sendProblem } from '../answers/answer.ts';
import { Problem } from '../problems/problems.ts';
import type { Pages } from './pages.ts';
import type { Pair } from './tls.ts';
import { handleUpgrades } from './upgrades.ts';

/** Time within which the head of a request must have arrived, milliseconds. `StalledClients` watches the body. */
const HEAD_MS = 30_000;
/** Interval of the checks of that time: Node looks every 30 s by itself. */
const CHECK_MS = 1_000;
/** Age of an idle connection. It is longer than that of common load balancers, so that they close first. */
const IDLE_MS = 72_000;
/** Time for a refused client to read the answer. A connection closed at once would take it back where bytes still come. */
const LINGER_MS = 1_000;

const OPTIONS: ServerOptions = {
  requestTimeout: 0,
  headersTimeout: HEAD_MS,
  connectionsCheckingInterval: CHECK_MS,
  keepAliveTimeout: IDLE_MS,
  // Node would answer without a body.
  requireHostHeader: false,
};

/**
 * A server of HTTPS with `pair`, of HTTP without. Only requests for which `takesUpgrade` is true leave HTTP: elsewhere the
 * header Upgrade is an offer that the server does not take.
 */
export function httpServer(
  handler: RequestListener,
  pair: Pair | undefined,
  takesUpgrade: (request: IncomingMessage) => boolean,
): Server {
  const options = { ...OPTIONS, shouldUpgradeCallback: takesUpgrade };
  const server = pair
    ? (createTlsServer({ ...options, ...pair, handshakeTimeout: HEAD_MS }, handler) as unknown as Server)
    : createServer(options, handler);
  handleUpgrades(server, handler);
  // Node would answer without a body; `checkHead` refuses.
  server.on('checkExpectation', handler);
  server.on('connect', (_, socket: Socket) => {
    refuse(socket, new Problem('MethodNotAllowed', 'No page takes CONNECT.', { headers: { allow: '' } }));
  });
  return server;
}

/** Refuses a request whose head Node accepts, or would refuse without a body. */
export function checkHead({ headers, raw }: FastifyRequest): void {
  if (headers.host === undefined && raw.httpVersion === '1.1') {
    throw new Problem('MalformedRequest', 'The header Host is missing; HTTP/1.1 asks for it.');
  }
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue') {
    throw new Problem('ExpectationFailed', `Expect is "${headers.expect}"; leave it out, or send 100-continue.`);
  }
}

/** Error of Node's parser, with the bytes that it read last, or of the connection. */
interface ParserError {
  code?: string;
  reason?: string;
  rawPacket?: unknown;
}

/** Answers what Node's parser refuses, with the status that was answered. */
export class ParserErrors {
  readonly #pages: Pages;
  readonly #onRefused: (status: number) => void;
  /** The reply under way on a connection. */
  readonly #replies = new WeakMap<Socket, FastifyReply>();
  readonly #refused = new WeakSet<Socket>();

  constructor(pages: Pages, onRefused: (status: number) => void) {
    this.#pages = pages;
    this.#onRefused = onRefused;
  }

  /** Remembers the reply on its connection. */
  begin(reply: FastifyReply): void {
    this.#replies.set(reply.request.raw.socket, reply);
  }

  handle(error: ParserError, socket: Socket): void {
    if (this.#refused.has(socket)) return;
    const problem = this.#problemOf(error);
    const reply = this.#replies.get(socket);
    const isOpen = reply !== undefined && !reply.raw.closed;
    // Bytes in the middle of an answer, or after a request whose answer is still to come, would be read as that answer.
    if (!problem || !socket.writable || (isOpen && (reply.raw.headersSent || reply.request.raw.complete))) {
      socket.destroy();
    } else if (isOpen) {
      sendProblem(reply, problem);
    } else {
      this.#refused.add(socket);
      this.#onRefused(problem.status);
      refuse(socket, problem);
    }
  }

  /** The refusal of an error; undefined for one of the connection, which has nobody to answer. */
  #problemOf({ code = '', reason, rawPacket }: ParserError): Problem | undefined {
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
      const text = `The head of the request did not come within ${HEAD_MS / 1000} s. Send it faster.`;
      return new Problem('RequestTimeout', text);
    }
    if (code === 'HPE_HEADER_OVERFLOW') {
      return new Problem('HeadersTooLarge', 'The headers have more than 16 KiB. Send fewer or shorter ones.');
    }
    if (!code.startsWith('HPE_')) return undefined;
    const [, method, url] = /^([!#$%&'*+.^_`|~\w-]+) (\S+) HTTP\/1\.[01]\r?$/m.exec(textOf(rawPacket)) ?? [];
    if (code === 'HPE_INVALID_METHOD' && url && !METHODS.includes(method as string)) return this.#pages.refusal(url);
    return new Problem('MalformedRequest', `The bytes are no HTTP/1.1 request: ${reason ?? code}.`);
  }
}

const textOf = (packet: unknown) => (Buffer.isBuffer(packet) ? packet.toString('latin1') : '');

function refuse(socket: Socket, problem: Problem): void {
  socket.end(asHttp(problem));
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}
