import { KubeClient } from '../../core/kube/client.ts';
import { customResourceDefinitions, namespaces } from '../../core/kube/resources.ts';
import { customResourceDefinition, kinds } from '../../core/resources/crd.ts';
import { silentLogger, systemClock, systemRandom } from '../../core/system.ts';
import type { UserInfo } from '../../local/apiserver/types.ts';
import { type TestServer, testServer } from './api-server.ts';
import { eventually } from './eventually.ts';

export interface BerthServer {
  server: TestServer;
  /** A client that may do everything. */
  admin: KubeClient;
  /** A client with the rights of this user. */
  as(user: Partial<UserInfo> & { username: string }): KubeClient;
  close(): Promise<void>;
}

/** An API server with Berth's kinds and the namespace `test`. */
export async function berthServer(): Promise<BerthServer> {
  const server = await testServer();
  const clients: KubeClient[] = [];
  const client = (token: string): KubeClient => {
    const made = new KubeClient({
      connection: {
        server: server.url,
        namespace: 'test',
        tls: { ca: server.ca },
        headers: async () => ({ authorization: `Bearer ${token}` }),
      },
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
      userAgent: 'test',
      deadlineMs: 120_000,
    });
    clients.push(made);
    return made;
  };
  const admin = client(server.connection.token as string);
  await admin.create(namespaces, { metadata: { name: 'test' } });
  for (const kind of kinds) await admin.create(customResourceDefinitions, customResourceDefinition(kind) as never);
  for (const { plural } of kinds) {
    await eventually(() => admin.raw('GET', `/apis/berth.dev/v1alpha1/${plural}`), { what: `${plural} are served` });
  }
  return {
    server,
    admin,
    as: (user) => client(server.mintToken({ groups: ['system:authenticated'], ...user })),
    async close() {
      await Promise.all(clients.map((made) => made.close()));
      await server.close();
    },
  };
}
