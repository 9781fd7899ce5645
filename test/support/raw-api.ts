import { Agent, request } from 'undici';

/** Connection to an API server, authenticated with either a token or a client certificate. */
export interface Connection {
  url: string;
  /** PEM. */
  ca: string;
  token?: string;
  certificate?: { cert: string; key: string };
}

export interface RawAnswer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers are read field by field, of any kind
  body: any;
  text: string;
  headers: Record<string, string | string[] | undefined>;
}

export interface RawOptions {
  body?: unknown;
  contentType?: string;
  accept?: string;
  /** Token instead of the connection's own; '' for none. */
  token?: string;
  /** Body that is sent unchanged. */
  raw?: Buffer | string;
  /** Further headers. */
  headers?: Record<string, string | string[]>;
}

export interface RawEvent {
  type: string;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  object: any;
}

/** The Kubernetes API without a client library between: every answer as it is. */
export class RawApi {
  readonly connection: Connection;
  readonly #agent: Agent;

  constructor(connection: Connection) {
    this.connection = connection;
    const { ca, certificate } = connection;
    // Over HTTP/2, undici joins the values of a header with commas.
    this.#agent = new Agent({ allowH2: false, connect: { ca, ...certificate } });
  }

  async call(method: string, path: string, options: RawOptions = {}): Promise<RawAnswer> {
    const { statusCode, headers, body } = await request(`${this.connection.url}${path}`, {
      method: method as 'GET',
      dispatcher: this.#agent,
      headers: this.#headers(options),
      body: options.raw ?? (options.body === undefined ? null : JSON.stringify(options.body)),
    });
    const text = await body.text();
    return { status: statusCode, headers, text, body: parsed(text) };
  }

  get = (path: string, options?: RawOptions) => this.call('GET', path, options);
  post = (path: string, body: unknown, options?: RawOptions) => this.call('POST', path, { ...options, body });
  put = (path: string, body: unknown, options?: RawOptions) => this.call('PUT', path, { ...options, body });
  delete = (path: string, body?: unknown) => this.call('DELETE', path, { body });
  patch = (path: string, body: unknown, type: 'merge' | 'json' | 'strategic' | 'apply' = 'merge') =>
    this.call('PATCH', path, { body, contentType: patchTypes[type] });

  /** Opens a watch, whose events come one by one; closing it ends the connection. */
  async watch(path: string): Promise<RawWatch> {
    const abort = new AbortController();
    const { statusCode, body } = await request(`${this.connection.url}${path}`, {
      dispatcher: this.#agent,
      headers: this.#headers({}),
      signal: abort.signal,
    });
    return new RawWatch(statusCode, body, abort);
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  #headers({
    token = this.connection.token,
    accept = 'application/json',
    contentType,
    body,
    raw,
    headers,
  }: RawOptions) {
    const type = contentType ?? (body === undefined && raw === undefined ? undefined : 'application/json');
    return {
      accept,
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(type === undefined ? {} : { 'content-type': type }),
      ...headers,
    };
  }
}

const patchTypes = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export class RawWatch {
  readonly status: number;
  readonly #events: AsyncGenerator<RawEvent>;
  readonly #abort: AbortController;

  constructor(status: number, body: AsyncIterable<Buffer>, abort: AbortController) {
    this.status = status;
    this.#abort = abort;
    this.#events = lines(body);
  }

  /**
   * Returns the next event; undefined when the server ended the watch. Rejects when the connection broke or after 60 s.
   */
  async next(): Promise<RawEvent | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no event within 60 s')), 60_000);
    });
    try {
      return (await Promise.race([this.#events.next(), late])).value;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Returns the next `count` events. */
  async take(count: number): Promise<RawEvent[]> {
    const events: RawEvent[] = [];
    while (events.length < count) {
      const event = await this.next();
      if (!event) throw new Error(`the watch ended after ${events.length} of ${count} events`);
      events.push(event);
    }
    return events;
  }

  close(): void {
    this.#abort.abort();
  }
}

async function* lines(body: AsyncIterable<Buffer>): AsyncGenerator<RawEvent> {
  let rest = '';
  for await (const chunk of body) {
    const parts = (rest + chunk.toString('utf8')).split('\n');
    rest = parts.pop() as string;
    for (const part of parts) if (part !== '') yield JSON.parse(part);
  }
}
