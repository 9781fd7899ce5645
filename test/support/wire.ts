import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to the API server whose connections can be cut. */
export class Wire {
  port = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((near) => {
    const far = connect(this.#to, '127.0.0.1');
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
      socket.on('data', (chunk: Buffer) => this.onBytes(chunk.length));
    }
  });
  readonly #to: number;
  onBytes: (count: number) => void = () => {};

  constructor(to: number) {
    this.#to = to;
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.port = (this.#server.address() as AddressInfo).port;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  close(): void {
    this.#server.close();
    this.cut();
  }
}
