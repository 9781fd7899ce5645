import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { ConfigError, parseConfig } from '../core/config.ts';
import { KubeClient } from '../core/kube/client.ts';
import { loadConnection } from '../core/kube/config.ts';
import { requireSupportedVersion } from '../core/kube/version.ts';
import { systemClock, systemRandom } from '../core/system.ts';
import { apiConfig } from './config.ts';
import { buildServer } from './server.ts';

/** Requests that take longer than this after a stop are cut. */
const STOP_LIMIT_MS = 9_000;

async function main(): Promise<void> {
  const config = parseConfig(apiConfig, process.env);
  const log = pino({ level: config.BERTH_LOG_LEVEL, base: null, timestamp: pino.stdTimeFunctions.isoTime });
  const api = new KubeClient({
    connection: await loadConnection(),
    clock: systemClock,
    random: systemRandom,
    log,
    userAgent: 'berth-api/0.1',
  });
  const version = await requireSupportedVersion(api);
  const server = buildServer({ api, config, clock: systemClock, random: systemRandom, log });
  await server.listen({ port: config.BERTH_API_PORT, host: config.BERTH_API_HOST ?? '::' });
  log.info({ kubernetes: version, port: (server.server.address() as AddressInfo).port }, 'API started');

  const stop = async (signal: NodeJS.Signals) => {
    log.info({ signal }, 'stopping');
    setTimeout(() => process.exit(1), STOP_LIMIT_MS).unref();
    await server.close();
    await api.close();
    log.info({}, 'API stopped');
    process.exit(0);
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

main().catch((error) => {
  if (error instanceof ConfigError) console.error(error.message);
  else console.error(`berth-api: ${error instanceof Error ? (error.stack ?? error.message) : error}`);
  process.exit(1);
});
