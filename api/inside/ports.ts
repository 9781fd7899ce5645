import { once } from 'node:events';
import type { PortConnection } from '../../core/enter/ports.ts';
import type { ClientSocket } from '../http/client-socket.ts';
import type { Trace } from './enter.ts';

/**
 * Carries bytes between a client's WebSocket and a connection to a port until both halves are closed. A client that closes its socket
 * earlier resets the connection. Rejects as the connection fails.
 */
export async function carry(socket: ClientSocket, connection: PortConnection, trace: Trace): Promise<void> {
  try {
    await Promise.all([up(socket, connection, trace), down(socket, connection, trace)]);
    if (!connection.closed) await once(connection, 'close');
  } finally {
    connection.destroy();
  }
}

async function up(socket: ClientSocket, connection: PortConnection, trace: Trace): Promise<void> {
  for await (const message of socket.messages()) {
    trace.add(message.length);
    if (!connection.write(message)) await once(connection, 'drain');
  }
  if (socket.isOver) throw new Error('the client has gone');
  connection.end();
}

async function down(socket: ClientSocket, connection: PortConnection, trace: Trace): Promise<void> {
  for await (const bytes of connection.iterator({ destroyOnReturn: false })) {
    trace.add(bytes.length);
    await socket.send(bytes);
  }
  await socket.sendEnd();
}
