import { once } from 'node:events';
import { type AddressInfo, createServer, isIPv6, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Ports } from '../cluster/backend.ts';
import { failed, refused } from '../errors.ts';

/** A port of this machine, 0 for any free one, and the port of the session that it leads to. */
export interface Forward {
  local: number;
  remote: number;
}

/** Addresses of `localhost`. A machine may lack the second. */
const LOCALHOST = ['127.0.0.1', '::1'];
/** Attempts to find a port that is free on all addresses. */
const ATTEMPTS = 10;

/** Ports of this machine that lead to a session. Disposing of it closes them and resets their connections. */
export class Forwarded implements Disposable {
  readonly #ports: Ports;
  readonly #onProblem: (remote: number, error: unknown) => void;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  /** `onProblem`: called for a connection that could not be made, or has failed. */
  constructor(ports: Ports, onProblem: (remote: number, error: unknown) => void) {
    this.#ports = ports;
    this.#onProblem = onProblem;
  }

  /** Listens on all addresses; resolves with the ends that it listens on, as in `[::1]:8080`. Rejects with a CliError. */
  async listen(addresses: readonly string[], { local, remote }: Forward): Promise<string[]> {
    const hosts = [...new Set(addresses.flatMap((address) => (address === 'localhost' ? LOCALHOST : address)))];
    const isNeeded = (host: string) => addresses.includes(host) || host === LOCALHOST[0];
    for (let attempt = 1; ; attempt += 1) {
      const listening: Server[] = [];
      try {
        let port = local;
        for (const host of hosts) {
          const server = await this.#listenOn(host, port, remote).catch((error: NodeJS.ErrnoException) => {
            const isMissing = error.code === 'EADDRNOTAVAIL' || error.code === 'EAFNOSUPPORT';
            if (isMissing && !isNeeded(host)) return undefined;
            throw Object.assign(error, { host });
          });
          if (!server) continue;
          listening.push(server);
          ({ port } = server.address() as AddressInfo);
        }
        this.#servers.push(...listening);
        return listening.map((server) => shown(server.address() as AddressInfo));
      } catch (error) {
        for (const server of listening) server.close();
        const { code, host = '' } = error as NodeJS.ErrnoException & { host?: string };
        if (code === 'EADDRINUSE' && local === 0 && attempt < ATTEMPTS) continue;
        throw problemOf(error as Error, host, local);
      }
    }
  }

  [Symbol.dispose](): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.resetAndDestroy();
    this.#ports.close();
  }

  async #listenOn(host: string, port: number, remote: number): Promise<Server> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      this.#serve(socket, remote);
    });
    server.listen({ host, port, ipv6Only: true });
    await once(server, 'listening');
    // A client that cannot be accepted is the client's loss alone.
    server.on('error', () => {});
    return server;
  }

  async #serve(socket: Socket, remote: number): Promise<void> {
    socket.on('error', () => {});
    let connection: Duplex;
    try {
      connection = await this.#ports.connect(remote);
    } catch (error) {
      this.#onProblem(remote, error);
      socket.resetAndDestroy();
      return;
    }
    connection.once('error', (error) => {
      // A client that has left ends its connection by that, which is no news.
      if (!socket.destroyed) this.#onProblem(remote, error);
      socket.resetAndDestroy();
    });
    if (socket.destroyed) connection.destroy();
    if (connection.destroyed) return void socket.resetAndDestroy();
    socket.once('error', () => connection.destroy());
    socket.pipe(connection);
    connection.pipe(socket);
  }
}

const shown = ({ address, port }: AddressInfo) => `${isIPv6(address) ? `[${address}]` : address}:${port}`;

function problemOf(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const where = `port ${port} of ${host}`;
  switch (error.code) {
    case 'EADDRINUSE':
      return refused(`${where} is in use by another program; name another one, or :REMOTE for any free one`);
    case 'EACCES':
      return refused(`${where} may not be used by this user; name one from 1024 on`);
    case 'EADDRNOTAVAIL':
      return refused(`--address: ${host} is no address of this machine`);
    default:
      return failed(`${where} cannot be used: ${error.message}`);
  }
}
