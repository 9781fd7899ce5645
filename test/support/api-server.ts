import { systemClock, systemRandom } from '../../core/system.ts';
import { startApiServer } from '../../local/apiserver/server.ts';
import type { ApiServer, ApiServerOptions } from '../../local/apiserver/types.ts';
import type { Connection } from './raw-api.ts';

export interface TestServer extends ApiServer {
  connection: Connection;
}

const failed = (fields: object, message: string) => console.error(message, fields);
const logger = { debug() {}, info() {}, warn: failed, error: failed, child: () => logger };

/** An API server of its own for a test, with a user who may do everything. */
export async function testServer(options: Partial<ApiServerOptions> = {}): Promise<TestServer> {
  const token = 'test-admin';
  const server = await startApiServer({
    clock: systemClock,
    random: systemRandom,
    logger,
    tokens: [{ token, user: { username: 'admin', uid: 'admin-uid', groups: ['system:masters'] } }],
    ...options,
  });
  return Object.assign(server, { connection: { url: server.url, ca: server.ca, token } });
}
