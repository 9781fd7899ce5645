import type { TestContext } from 'vitest';
import { KubeClient, type KubeClientOptions } from '../../../core/kube/client.ts';
import { silentLogger, systemClock } from '../../../core/system.ts';
import { KubeServer } from '../../support/kube-server.ts';
import { seededRandom } from '../../support/random.ts';

/** A started server and a client of it, both gone when the test ends. */
export async function serverAndClient(
  t: TestContext,
  options: Partial<KubeClientOptions> = {},
): Promise<{ server: KubeServer; client: KubeClient }> {
  const server = await new KubeServer().start();
  const client = new KubeClient({
    connection: server.connection,
    clock: systemClock,
    random: seededRandom(),
    log: silentLogger,
    userAgent: 'berth-test/1',
    ...options,
  });
  t.onTestFinished(async () => {
    await client.close();
    await server.stop().catch(() => {});
  });
  return { server, client };
}
