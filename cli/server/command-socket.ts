import type { WebSocket } from 'ws';
import { onAbort } from '../../core/abort.ts';
import { type FrameCarrier, FrameConnection, type FrameStream } from '../../core/enter/client.ts';
import { TransportError } from '../../core/kube/errors.ts';
import type { StreamEnd } from '../../core/kube/types.ts';
import type { Clock } from '../../core/runtime.ts';
import type { ServerClient } from './client.ts';
import { refusalOf } from './errors.ts';

/** Bytes on their way to the server above which whoever sends waits. */
const WRITE_BYTES = 256 * 1024;
/**
 * Bytes of output that may wait for their reader: more than a command prints before it waits for one. A server closes a connection that is
 * not read for a while, and a command that nobody is attached to would end.
 */
const UNREAD_BYTES = 9 * 1024 * 1024;
/** Time that the server has to answer a close before the connection is cut, milliseconds. */
const CLOSE_MS = 2_000;

export interface CommandSocketOptions {
  query: Record<string, string | number | boolean | undefined>;
  /** Name of the session, for messages. */
  session: string;
  clock: Clock;
  signal: AbortSignal;
}

/**
 * Opens the WebSocket of a command; resolves with its frames once the command has answered. Rejects with an EnterError where the session
 * refuses, as the client does otherwise.
 */
export async function commandSocket(
  client: ServerClient,
  path: string,
  { query, session, clock, signal }: CommandSocketOptions,
): Promise<FrameStream> {
  const socket = await client.socket(path, { query, signal });
  const lost = ({ message = '' }: StreamEnd) => (signal.aborted ? signal.reason : lossOf(session, message));
  const connection = new FrameConnection(session, clock, lost, UNREAD_BYTES);
  const forget = onAbort(signal, () => socket.terminate());
  socket.on('message', (data: Buffer) => connection.take(data));
  socket.on('ping', () => connection.heard());
  const carrier = carrierOf(socket, clock);
  void carrier.closed.then(forget);
  connection.opened(carrier);
  socket.resume();
  await connection.answered();
  return connection;
}

function carrierOf(socket: WebSocket, clock: Clock): FrameCarrier {
  let failure = '';
  let cancel = () => {};
  socket.on('error', (error) => {
    failure = error.message;
  });
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        if (socket.readyState !== socket.OPEN) {
          reject(new TransportError('the connection to the server is closed'));
          return;
        }
        socket.send(bytes, (error) => {
          if (error) reject(new TransportError(error.message, { cause: error }));
          else resolve();
        });
        if (socket.bufferedAmount <= WRITE_BYTES) resolve();
      }),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close() {
      if (socket.readyState !== socket.OPEN) return;
      // The answer to the close comes behind what was not read.
      socket.resume();
      cancel = clock.setTimer(CLOSE_MS, () => socket.terminate());
      socket.close();
    },
    closed: new Promise<StreamEnd>((resolve) => {
      socket.on('close', (code, reason) => {
        cancel();
        resolve({ by: 'connection', message: String(reason) || failure || `it was closed with ${code}` });
      });
    }),
  };
}

/** Returns the error for the reason with which the server closes a socket: the code of a problem, and its text. */
function lossOf(session: string, reason: string): Error {
  const [, code = '', text = ''] = /^([A-Z]\w+): (.*)$/s.exec(reason) ?? [];
  return refusalOf(code, text) ?? new TransportError(`the connection to session ${session} was lost: ${reason}`);
}
