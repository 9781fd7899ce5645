/** WebSockets: requests to upgrade a connection pass the server's hooks and handlers as every request does. */
import {
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestListener,
  type Server,
  ServerResponse,
} from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { onAbort } from '../../core/abort.ts';
import type { Clock } from '../../core/runtime.ts';
import { toProblem } from '../problems/errors.ts';
import { Problem } from '../problems/problems.ts';
import type { Answer } from '../route.ts';
import { CLOSE, ClientSocket } from './client-socket.ts';

/** Limit of a message of a client, bytes. */
const MESSAGE_BYTES = 1024 * 1024;

interface Upgrade {
  response: ServerResponse;
  /** Bytes that came right behind the request. */
  head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

const sockets = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: MESSAGE_BYTES,
  handleProtocols: () => false,
});
sockets.on('headers', (lines, request) => {
  for (const [name, value] of Object.entries(upgrades.get(request)?.response.getHeaders() ?? {})) {
    lines.push(`${name}: ${value}`);
  }
});

/** True if the request asks for a WebSocket, as RFC 6455 has it. */
export function asksForSocket({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'GET' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-version'] === '13' &&
    /^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')
  );
}

/** Gives requests for a WebSocket to the handler, with an answer that ends the connection unless `serveUpgrade` is called. */
export function handleUpgrades(server: Server, handler: RequestListener): void {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(request.socket);
    response.once('finish', () => request.socket.end());
    upgrades.set(request, { response, head });
    handler(request, response);
  });
}

/** Returns the refusal of a request to the page of a WebSocket that asks for none. */
export function upgradeRequired(): Problem {
  const text =
    'The page is a WebSocket. Send Connection: Upgrade, Upgrade: websocket, Sec-WebSocket-Version: 13 and a Sec-WebSocket-Key.';
  return new Problem('UpgradeRequired', text, { headers: { upgrade: 'websocket', 'sec-websocket-version': '13' } });
}

/**
 * Answers 101, serves the socket and closes it, with a code that says why. Rejects where the client has gone before.
 * `onFault`: called with an error that clients are not told.
 */
export async function serveUpgrade(
  request: IncomingMessage,
  serve: NonNullable<Answer['serve']>,
  options: {
    clock: Clock;
    signal: AbortSignal;
    headers: OutgoingHttpHeaders;
    onOpen: () => void;
    onFault: (error: unknown) => void;
  },
): Promise<void> {
  const { clock, signal, headers, onOpen, onFault } = options;
  const socket = new ClientSocket(await accept(request, headers), clock);
  onOpen();
  const forget = onAbort(signal, () => closeFor(socket, signal.reason));
  try {
    await serve(socket);
    socket.close(CLOSE.normal);
  } catch (error) {
    if (!signal.aborted && toProblem(error).code === 'Internal') onFault(error);
    closeFor(socket, error);
  } finally {
    forget();
  }
}

function accept(request: IncomingMessage, headers: OutgoingHttpHeaders): Promise<WebSocket> {
  const upgrade = upgrades.get(request);
  return new Promise((resolve, reject) => {
    if (!upgrade || request.socket.destroyed || !request.socket.writable) reject(new Error('the client has gone'));
    else {
      upgrade.response.statusCode = 101;
      for (const [name, value] of Object.entries(headers))
        if (value !== undefined) upgrade.response.setHeader(name, value);
      sockets.handleUpgrade(request, request.socket, upgrade.head, resolve);
    }
  });
}

function closeFor(socket: ClientSocket, error: unknown): void {
  const { code, message } = toProblem(error);
  const isRefused = code === 'Forbidden' || code === 'Unauthenticated';
  const status = code === 'ShuttingDown' ? CLOSE.restart : isRefused ? CLOSE.refused : CLOSE.failed;
  socket.close(status, `${code}: ${message}`);
}
