import { createServer, type Server, type ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';

/** Problems of the program, as texts; undefined when there is none. */
export interface Health {
  /** Problem that only a restart can solve. */
  stalled(): string | undefined;
  /** Problem that keeps the program from its work (yet). */
  problem(): string | undefined;
  /** Limitation under which the program works. */
  note?(): string | undefined;
}

/**
 * `/healthz` answers only while the event loop turns, and 503 when nothing moves all the same. `/readyz` answers 200
 * once the caches follow the API server, and lists what is left out; else 503, and lists what is missing. `/metrics` is
 * for Prometheus: it names no session.
 */
export function serveHealth(
  where: { port: number; host?: string | undefined },
  health: Health,
  metrics: Pick<Registry, 'metrics' | 'contentType'>,
): Promise<Server> {
  const checks = new Map([
    ['/healthz', () => health.stalled()],
    ['/readyz', () => health.problem()],
  ]);
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0] ?? '';
    if (path === '/metrics') {
      void sendMetrics(response, metrics);
      return;
    }
    const check = checks.get(path);
    if (!check) {
      response.writeHead(404).end();
      return;
    }
    const text = check();
    const note = health.note?.();
    const fine = note ? `ok, but ${note}` : 'ok';
    response.writeHead(text ? 503 : 200, { 'content-type': 'text/plain' }).end(`${text ?? fine}\n`);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(where.port, where.host, () => resolve(server));
  });
}

async function sendMetrics(
  response: ServerResponse,
  metrics: Pick<Registry, 'metrics' | 'contentType'>,
): Promise<void> {
  try {
    const text = await metrics.metrics();
    response.writeHead(200, { 'content-type': metrics.contentType }).end(text);
  } catch (error) {
    response
      .writeHead(500, { 'content-type': 'text/plain' })
      .end(`${error instanceof Error ? error.message : error}\n`);
  }
}
