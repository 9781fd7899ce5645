import { createServer, type Server } from 'node:http';

/**
 * `/healthz` answers while the event loop turns, which is what a liveness probe has to know; `/readyz` answers 200 once
 * the caches follow the API server, else 503 with what is missing.
 */
export function serveHealth(
  where: { port: number; host?: string | undefined },
  problem: () => string | undefined,
): Promise<Server> {
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0];
    if (path !== '/healthz' && path !== '/readyz') {
      response.writeHead(404).end();
      return;
    }
    const text = path === '/readyz' ? problem() : undefined;
    response.writeHead(text ? 503 : 200, { 'content-type': 'text/plain' }).end(`${text ?? 'ok'}\n`);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(where.port, where.host, () => resolve(server));
  });
}
