/** A proxy on the loopback interface, HTTP/1.1, that knows where exchanges begin and does something wrong to one of them. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { ANSWERS, type Exchange, type Fault, type FaultName } from './faults.ts';

/** Time in which no connection is taken, milliseconds. */
const REFUSE_MS = 60;
/** Bytes of the stream that is held that are taken before. */
const HELD_AFTER = 64 * 1024;
/** Streams that end at once, one after the other. */
const ENDED_STREAMS = 3;

interface Request {
  head: string;
  body: Buffer;
}

export interface ProxyOptions {
  /** Port of the server on 127.0.0.1; asked for each exchange. */
  upstream: () => number;
  fault?: Fault | undefined;
  /** Time that `late` holds an answer back, milliseconds. */
  lateMs: number;
  /** Time from the first stream on in which each stream ends well after its head, milliseconds. */
  endStreamsMs: number;
  /** Time for which nothing is taken of the first stream after its beginning, as where the client takes nothing and has no room; milliseconds. */
  holdStreamMs: number;
  /** Called with the fault's exchange where the fault is not the proxy's to make. */
  onFault: (name: 'abort' | 'kill') => void | Promise<void>;
}

export class FaultyProxy {
  /** Exchanges in the order of their arrival. */
  readonly exchanges: Exchange[] = [];
  /** True once the fault has been made. */
  wasMade = false;
  readonly #options: ProxyOptions;
  readonly #host: string;
  readonly #clients = new Set<Socket>();
  readonly #servers = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #restart: Promise<void> | undefined;
  #underWay = 0;
  #ended = 0;
  #hasHeld = false;
  /** Time until which streams end, of performance.now(). */
  #endsUntil: number | undefined;

  private constructor(options: ProxyOptions) {
    this.#options = options;
    // An address of its own, so that nothing else takes the port while no connection is taken.
    const part = () => 1 + Math.floor(Math.random() * 253);
    this.#host = `127.${part()}.${part()}.${part()}`;
  }

  static async start(options: ProxyOptions): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(options);
    await proxy.#listen();
    if (options.fault?.name === 'refuse' && options.fault.at === 0) proxy.#refuse();
    return proxy;
  }

  get url(): string {
    return `http://${this.#host}:${this.#port}`;
  }

  /** Exchanges that have begun and not ended. */
  get underWay(): number {
    return this.#underWay;
  }

  /** Connections that clients have open. */
  get openSockets(): number {
    return this.#clients.size;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#server?.close();
    for (const socket of [...this.#clients, ...this.#servers]) socket.destroy();
  }

  async #listen(): Promise<void> {
    const server = createServer((socket) => this.#serve(socket));
    this.#server = server;
    server.listen(this.#port, this.#host);
    await once(server, 'listening');
    this.#port = (server.address() as { port: number }).port;
  }

  #refuse(): void {
    this.wasMade = true;
    this.#server?.close();
    for (const socket of this.#clients) socket.destroy();
    this.#timer = setTimeout(() => {
      if (!this.#isClosed) void this.#listen();
    }, REFUSE_MS);
  }

  #serve(client: Socket): void {
    this.#clients.add(client);
    client.on('error', () => {});
    client.once('close', () => this.#clients.delete(client));
    let received = Buffer.alloc(0);
    let isBusy = false;
    const next = async () => {
      const request = isBusy ? undefined : requestIn(received);
      if (!request) return;
      isBusy = true;
      received = received.subarray(request.head.length + request.body.length);
      this.#underWay++;
      const number = this.exchanges.length;
      try {
        await this.#exchange(client, request, number);
      } finally {
        this.#underWay--;
        isBusy = false;
      }
      const { fault } = this.#options;
      if (fault?.name === 'refuse' && fault.at === number + 1 && !this.wasMade) this.#refuse();
      await next();
    };
    client.on('data', (piece) => {
      received = Buffer.concat([received, piece]);
      void next();
    });
  }

  /** Resolves when the exchange is over, or the connection. */
  async #exchange(client: Socket, request: Request, number: number): Promise<void> {
    const [method = '', path = ''] = request.head.split(' ', 2);
    const seen: Exchange = { method, path, status: 0, headMs: 0, type: '', pieces: 0, bytes: 0, hasMultibyte: false };
    this.exchanges.push(seen);
    const fault = this.#faultAt(number);
    // The others are made later, where they can be.
    if (fault !== undefined && fault !== 'refuse' && fault !== 'flip') this.wasMade = true;
    // While there is no server, requests wait, as at a balancer.
    await this.#restart;
    if (fault === 'abort') await this.#options.onFault('abort');
    if (fault === 'kill' && !path.includes('/events')) this.#kill();
    const answer = fault && ANSWERS[fault];
    if (answer) {
      client.write(answer);
    } else if (fault === 'close') {
      client.destroy();
    } else if (fault === 'stall') {
      await closed(client);
    } else {
      if (fault === 'twice') await this.#forward(undefined, request, seen, undefined);
      await this.#forward(client, request, seen, fault);
    }
  }

  #kill(): void {
    this.#restart ??= Promise.resolve(this.#options.onFault('kill'));
  }

  async #hold({ type, bytes }: Exchange): Promise<void> {
    const { holdStreamMs } = this.#options;
    if (holdStreamMs === 0 || this.#hasHeld || !type.startsWith('text/event-stream') || bytes < HELD_AFTER) return;
    this.#hasHeld = true;
    await delay(holdStreamMs);
  }

  #endsStream(fault: FaultName | undefined): boolean {
    if (fault === 'end-stream') return ++this.#ended > 0;
    this.#endsUntil ??= performance.now() + this.#options.endStreamsMs;
    return performance.now() < this.#endsUntil;
  }

  #faultAt(number: number): FaultName | undefined {
    const { fault } = this.#options;
    if (fault?.name === 'end-stream') {
      return number >= fault.at && this.#ended < ENDED_STREAMS ? 'end-stream' : undefined;
    }
    return fault?.at === number ? fault.name : undefined;
  }

  /** Sends the request to the server and the answer to the client, where there is one. */
  async #forward(
    client: Socket | undefined,
    { head, body }: Request,
    seen: Exchange,
    fault: FaultName | undefined,
  ): Promise<void> {
    const start = performance.now();
    const server = connect(this.#options.upstream(), '127.0.0.1');
    this.#servers.add(server);
    server.on('error', () => {});
    const leave = () => void server.destroy();
    client?.once('close', leave);
    // The end of the answer is that of the server's connection; the client's own connection goes on.
    server.write(head.replace(/\r\nconnection:[^\r]*/i, '').replace(/\r\n\r\n$/, '\r\nconnection: close\r\n\r\n'));
    server.write(body);
    // A client that is told to give up gets nothing more: an answer would race with what it is told.
    const taker = fault === 'abort' ? undefined : client;
    const damage = new Damage(fault);
    let before = Buffer.alloc(0);
    let isHead = true;
    let tail = Buffer.alloc(0);
    let length: number | undefined;
    try {
      for await (const piece of server as AsyncIterable<Buffer>) {
        let content = piece;
        if (isHead) {
          before = Buffer.concat([before, piece]);
          const end = before.indexOf('\r\n\r\n');
          if (end === -1) continue;
          isHead = false;
          const answer = before
            .subarray(0, end + 4)
            .toString('latin1')
            .replace(/\r\nconnection:[^\r]*/i, '');
          content = before.subarray(end + 4);
          seen.headMs = performance.now() - start;
          seen.status = Number(answer.split(' ', 2)[1]);
          seen.type = /\r\ncontent-type: *([^\r]*)/i.exec(answer)?.[1] ?? '';
          const declared = /\r\ncontent-length: *(\d+)/i.exec(answer)?.[1];
          length = declared === undefined ? undefined : Number(declared);
          if (fault === 'kill') this.#kill();
          if (fault === 'lose') return void client?.destroy();
          if (fault === 'late') await delay(this.#options.lateMs);
          if (fault === 'cut-head') return void client?.end(answer.slice(0, answer.length / 2));
          if (seen.type.startsWith('text/event-stream') && this.#endsStream(fault)) {
            client?.write(answer, 'latin1');
            return void client?.write('0\r\n\r\n');
          }
          await write(taker, Buffer.from(answer, 'latin1'));
          if (content.length === 0) continue;
        }
        seen.pieces++;
        seen.bytes += content.length;
        seen.hasMultibyte ||= content.some((byte) => byte >= 0xc0) && seen.type.includes('stream');
        tail = Buffer.concat([tail, content]).subarray(-5);
        if (fault === 'flip') this.wasMade ||= seen.status === 200 || seen.status === 206;
        const { bytes, next } =
          fault === 'flip' && !this.wasMade ? { bytes: content } : damage.done(content, seen.pieces);
        await write(taker, bytes);
        await this.#hold(seen);
        if (next === 'close') return void client?.end();
        if (next === 'abort') await this.#options.onFault('abort');
        if ((next === 'stall' || next === 'abort') && client) return await closed(client);
      }
      const isWhole =
        length === undefined ? tail.toString() === '0\r\n\r\n' || isWithoutBody(seen) : seen.bytes >= length;
      if (isHead || !isWhole) client?.destroy();
      if (fault === 'abort' && client) await closed(client);
    } catch {
      client?.destroy();
    } finally {
      client?.off('close', leave);
      server.destroy();
      this.#servers.delete(server);
    }
  }
}

const isWithoutBody = ({ status }: Exchange) => status === 204 || status === 304;

/** The damage to a body. */
class Damage {
  readonly #fault: FaultName | undefined;
  #ids = 0;

  constructor(fault: FaultName | undefined) {
    this.#fault = fault;
  }

  /** Returns what goes to the client of a piece of the body, and what happens then. */
  done(piece: Buffer, count: number): { bytes: Buffer; next?: 'close' | 'stall' | 'abort' } {
    const half = piece.subarray(0, Math.ceil(piece.length / 2));
    switch (this.#fault) {
      case 'cut-body':
        return { bytes: half, next: 'close' };
      case 'cut-later':
        return count < 3 ? { bytes: piece } : { bytes: half, next: 'close' };
      case 'stall-body':
        return { bytes: half, next: 'stall' };
      case 'abort-body':
        return { bytes: half, next: 'abort' };
      case 'cut-character': {
        const at = piece.findIndex((byte) => byte >= 0xc0);
        return at === -1 ? { bytes: piece } : { bytes: piece.subarray(0, at + 1), next: 'close' };
      }
      case 'cut-id':
        for (let at = piece.indexOf('id: '); at !== -1; at = piece.indexOf('id: ', at + 1)) {
          if (++this.#ids === 2) return { bytes: piece.subarray(0, at + 5), next: 'close' };
        }
        return { bytes: piece };
      case 'flip': {
        if (count > 1) return { bytes: piece };
        const other = Buffer.from(piece);
        const at = other.length >> 1;
        other[at] = (other[at] as number) ^ 1;
        return { bytes: other };
      }
      default:
        return { bytes: piece };
    }
  }
}

/** Returns the first request that is whole in the bytes; undefined where none is. */
function requestIn(bytes: Buffer): Request | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const head = bytes.subarray(0, end + 4).toString('latin1');
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
  if (/\r\ntransfer-encoding:/i.test(head)) throw new Error('the proxy takes no requests in chunks');
  const whole = end + 4 + length;
  return bytes.length < whole ? undefined : { head, body: Buffer.from(bytes.subarray(end + 4, whole)) };
}

/** Resolves when the client has taken the bytes, or is gone. */
async function write(client: Socket | undefined, bytes: Buffer): Promise<void> {
  if (client && !client.destroyed && !client.write(bytes)) await Promise.race([once(client, 'drain'), closed(client)]);
}

const closed = (socket: Socket) =>
  new Promise<void>((resolve) => (socket.destroyed ? resolve() : socket.once('close', () => resolve())));

const delay = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
