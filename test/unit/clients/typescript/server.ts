import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { Berth, type BerthOptions } from '../../../../clients/typescript/src/index.ts';

export const TOKEN = 'a-secret-token';
/** Limits and waits that take no time of a test. */
export const QUICK = { attemptMs: 60_000, waitMs: 30_000, silenceMs: 60_000, unansweredMs: 1, baseMs: 1, maxMs: 2 };

/**
 * Clock of a client whose short waits are over at once, and take as long as they say; longer ones are over when the test says so. No test depends
 * on how fast the machine is.
 */
export class LeapingClock {
  #now = 0;
  readonly #long = new Set<{ ms: number; fn: () => void }>();
  readonly #leapMs: number;
  readonly #leapt: (now: number) => void;

  /** `leapMs`: the longest wait that is over at once; `leapt` gets the time after each. */
  constructor({ leapMs = 10, leapt = () => {} }: { leapMs?: number; leapt?: (now: number) => void } = {}) {
    this.#leapMs = leapMs;
    this.#leapt = leapt;
  }

  monotonic(): number {
    return this.#now;
  }

  setTimer(ms: number, fn: () => void): () => void {
    if (ms <= this.#leapMs) {
      const timer = setImmediate(() => {
        this.#now += ms;
        this.#leapt(this.#now);
        fn();
      });
      return () => clearImmediate(timer);
    }
    const wait = { ms, fn };
    this.#long.add(wait);
    return () => void this.#long.delete(wait);
  }

  /** Ends the waits of this length; returns whether there was one. */
  end(ms: number): boolean {
    const over = [...this.#long].filter((wait) => wait.ms === ms);
    this.#now += over.length > 0 ? ms : 0;
    for (const { fn } of over) fn();
    return over.length > 0;
  }
}

export interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

export type Answerer = (response: ServerResponse, seen: Seen) => void;

/** A server that answers as the test says: the first request with the first answer, and so on; the last answer is for all that follow. */
export class Misbehaving {
  readonly seen: Seen[] = [];
  /** How many answers have neither ended nor been given up. */
  openAnswers = 0;
  readonly url: string;
  readonly close: () => Promise<void>;
  readonly #sockets: Set<Socket>;

  private constructor(url: string, sockets: Set<Socket>, close: () => Promise<void>) {
    this.url = url;
    this.#sockets = sockets;
    this.close = close;
  }

  static async start(...answers: Answerer[]): Promise<Misbehaving> {
    const sockets = new Set<Socket>();
    const server = createServer(async (request, response) => {
      const { method = '', url = '', headers } = request;
      const seen = { method, url, headers, body: await text(request).catch(() => '') };
      made.seen.push(seen);
      made.openAnswers++;
      response.once('close', () => made.openAnswers--);
      answers[Math.min(made.seen.length, answers.length) - 1]?.(response, seen);
    });
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const made: Misbehaving = new Misbehaving(
      `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      sockets,
      () => {
        server.closeAllConnections();
        return new Promise((resolve) => server.close(() => resolve()));
      },
    );
    return made;
  }

  get openSockets(): number {
    return this.#sockets.size;
  }

  client(options: BerthOptions = {}): Berth {
    return new Berth({ server: this.url, token: TOKEN, deadlineMs: 60_000, timing: QUICK, ...options });
  }
}

export const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answerer =>
  (response) => {
    const type = status < 400 ? 'application/json' : 'application/problem+json';
    response.writeHead(status, { 'content-type': type, ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

export const problem = (status: number, code: string, headers: Record<string, string> = {}) =>
  json(status, { type: 'x', title: 'x', status, code, detail: `It is ${code}.` }, headers);

export const page =
  (status: number, html: string): Answerer =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'text/html' }).end(html);

export const cut: Answerer = (response) => void response.socket?.destroy();
export const hang: Answerer = () => {};

/** Sends the head and a part of the body, then cuts the connection. */
export const cutBody =
  (part: string): Answerer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
    response.write(part, () => response.socket?.destroy());
  };

const metadata = (name: string) => ({
  name,
  namespace: 'default',
  uid: `uid-of-${name}`,
  resourceVersion: '1',
  creationTimestamp: '2026-01-01T00:00:00Z',
});

export const session = (name: string, status: object = {}) => ({
  metadata: metadata(name),
  spec: { class: 'default' },
  status,
});
export const turn = (name: string, status: object = {}, of = 'notes') => ({
  metadata: metadata(name),
  spec: { session: of, cancel: false },
  status,
});

/** Starts a server that gives these answers; it is closed at the end of the test. */
export async function serving(...answers: Answerer[]): Promise<Misbehaving> {
  const server = await Misbehaving.start(...answers);
  onTestFinished(() => server.close());
  return server;
}

/** Resolves with the error that the work rejects with. */
export async function rejection(work: Promise<unknown>): Promise<Error> {
  try {
    await work;
  } catch (error) {
    return error as Error;
  }
  throw new Error('it was answered');
}
