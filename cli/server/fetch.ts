import type { Fetch, FetchResponse } from '../../clients/typescript/src/http.ts';
import type { Answer, Transport } from '../../core/kube/transport.ts';

/** An answer with the header fields that came behind its body; none before its end. */
export interface TransportResponse extends FetchResponse {
  trailers(): Answer<unknown>['headers'];
}

/**
 * Returns a `fetch` for the client that sends over the connections of the transport, with its certificates. `server` is the URL before all paths. The
 * start of the command line needs neither Node's own `fetch`, which is another undici, nor web streams.
 */
export function fetchOver(transport: Transport, server: string): Fetch {
  return async (url, { method, headers, body, signal }): Promise<TransportResponse> => {
    const answer = await transport.stream({
      method,
      path: url.slice(server.length),
      headers,
      ...(body === undefined ? {} : { body }),
      signal,
    });
    return {
      status: answer.status,
      headers: { get: (name) => headerOf(answer.headers, name) },
      body: bodyOf(answer.body),
      trailers: answer.trailers,
    };
  };
}

/** Returns a header field as `Headers` does. */
export function headerOf(headers: Answer<unknown>['headers'], name: string): string | null {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : (value ?? null);
}

function bodyOf(chunks: AsyncIterable<Buffer>): FetchResponse['body'] {
  const iterator = chunks[Symbol.asyncIterator]();
  const cancel = async () => void (await iterator.return?.());
  return {
    getReader: () => ({
      async read() {
        const { done = false, value } = await iterator.next();
        return { done, value };
      },
      cancel,
    }),
    cancel,
  };
}
