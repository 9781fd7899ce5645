import { WebSocket } from 'ws';
import type { Connection } from './raw-api.ts';

/** Status at the end of a stream, with the fields that tests read. */
export interface StreamStatus {
  status: string;
  message?: string;
  reason?: string;
  details?: { causes: { reason: string; message: string }[] };
}

/** Messages of one attach or exec, by channel, without a client library between. */
export class Channels {
  readonly stdout: Buffer[] = [];
  readonly stderr: Buffer[] = [];
  status: StreamStatus | undefined;
  closed = false;
  readonly #socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => {
      if (data[0] === 1) this.stdout.push(data.subarray(1));
      else if (data[0] === 2) this.stderr.push(data.subarray(1));
      else if (data[0] === 3 && data.length > 1) this.status = JSON.parse(data.toString('utf8', 1));
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
    });
  }

  /** `path` with query. Rejects with an Error whose message is the HTTP status when the upgrade is refused. */
  static open(connection: Connection, path: string, protocol = 'v5.channel.k8s.io'): Promise<Channels> {
    const { url, ca, token, certificate } = connection;
    const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, [protocol], {
      ca,
      ...certificate,
      ...(token ? { headers: { authorization: `Bearer ${token}` } } : {}),
      perMessageDeflate: false,
    });
    const channels = new Channels(socket);
    return new Promise((resolve, reject) => {
      socket.once('open', () => resolve(channels));
      socket.once('unexpected-response', (_request, answer) => {
        // The answer is destroyed because an open one would keep the process alive.
        answer.destroy();
        reject(new Error(String(answer.statusCode)));
      });
      socket.once('error', reject);
    });
  }

  get out(): string {
    return Buffer.concat(this.stdout).toString();
  }

  get err(): string {
    return Buffer.concat(this.stderr).toString();
  }

  get outBytes(): number {
    return this.stdout.reduce((sum, piece) => sum + piece.length, 0);
  }

  send(text: string): void {
    this.#socket.send(Buffer.concat([Buffer.of(0), Buffer.from(text)]));
  }

  resize(rows: number, columns: number): void {
    this.#socket.send(Buffer.concat([Buffer.of(4), Buffer.from(JSON.stringify({ Width: columns, Height: rows }))]));
  }

  closeStdin(): void {
    this.#socket.send(Buffer.of(255, 0));
  }

  stopReading(): void {
    this.#socket.pause();
  }

  readAgain(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.terminate();
  }
}
