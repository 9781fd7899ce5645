import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

interface Client {
  sockets: Set<Socket>;
  /** Requests under way. */
  requests: Set<Promise<void>>;
}

/** Connections and requests of each client. Clients are distinguished by their credentials. */
export class Connections {
  readonly #clients = new Map<string, Client>();

  /** Registers a request. `request` settles when it has been carried out, and never rejects. */
  carryOut({ headers, socket }: IncomingMessage, request: Promise<void>): void {
    const { authorization } = headers;
    if (authorization === undefined) return;
    const client = this.#clients.get(authorization) ?? { sockets: new Set(), requests: new Set() };
    this.#clients.set(authorization, client);
    const forgetIfGone = () => {
      if (client.sockets.size + client.requests.size === 0) this.#clients.delete(authorization);
    };
    if (!client.sockets.has(socket) && !socket.destroyed) {
      client.sockets.add(socket);
      socket.once('close', () => {
        client.sockets.delete(socket);
        forgetIfGone();
      });
    }
    client.requests.add(request);
    void request.finally(() => {
      client.requests.delete(request);
      forgetIfGone();
    });
  }

  /** Destroys all connections of a client. Resolves when none of its requests is under way. */
  async cut(authorization: string): Promise<void> {
    const client = this.#clients.get(authorization);
    if (!client) return;
    for (const socket of client.sockets) socket.destroy();
    await Promise.all(client.requests);
  }
}
