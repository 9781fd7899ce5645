import type { AddressInfo } from 'node:net';
import type { Server as TlsServer } from 'node:tls';
import { KubeClient } from '../core/kube/client.ts';
import { loadConnection } from '../core/kube/config.ts';
import { requireSupportedVersion } from '../core/kube/server-version.ts';
import { parseConfig } from '../core/program/config.ts';
import { programLog } from '../core/program/log.ts';
import { measureProcess } from '../core/program/metrics.ts';
import { startFailure } from '../core/program/start-failure.ts';
import { VERSION } from '../core/program/version.ts';
import { delay } from '../core/runtime.ts';
import { systemClock, systemRandom } from '../core/system.ts';
import { apiConfig } from './config.ts';
import { type Pair, readPair, renewPair } from './http/tls.ts';
import { ApiMetrics } from './metrics.ts';
import { buildServer } from './server.ts';

/** Time that requests may take once no more are taken, before they are cut. */
const STOP_LIMIT_MS = 9_000;

async function main(): Promise<void> {
  const config = parseConfig(apiConfig, process.env);
  const log = programLog(1, config.BERTH_LOG_LEVEL, config.BERTH_LOG_FORMAT);
  const metrics = new ApiMetrics();
  measureProcess(metrics.registry);
  const api = new KubeClient({
    connection: await loadConnection(),
    clock: systemClock,
    random: systemRandom,
    log,
    userAgent: `berth-api/${VERSION}`,
    onRequest: metrics.onRequest,
  });
  const version = await requireSupportedVersion(api);
  const { BERTH_API_TLS_CERT_FILE: certFile, BERTH_API_TLS_KEY_FILE: keyFile } = config;
  const files = certFile !== undefined && keyFile !== undefined ? { certFile, keyFile } : undefined;
  const pair = files && (await readPair(files));
  const leaving = new AbortController();
  const server = buildServer({
    api,
    config,
    clock: systemClock,
    random: systemRandom,
    log,
    metrics,
    leaving: leaving.signal,
    ...(pair ? { pair } : {}),
  });
  if (files && pair) {
    const use = (next: Pair) => (server.server as unknown as TlsServer).setSecureContext(next);
    renewPair(files, pair, { clock: systemClock, log, metrics, use });
  }
  await server.listen({ port: config.BERTH_API_PORT, host: config.BERTH_API_HOST ?? '::' });

  const stop = async (signal: NodeJS.Signals) => {
    const delayMs = config.BERTH_API_SHUTDOWN_DELAY;
    log.info({ signal, delayMs }, 'stopping');
    leaving.abort();
    if (delayMs > 0) await delay(systemClock, delayMs);
    setTimeout(() => process.exit(1), STOP_LIMIT_MS).unref();
    await server.close();
    await api.close();
    log.info({}, 'API stopped');
    process.exit(0);
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  // The log line marks the moment from which a signal stops the server properly.
  log.info(
    {
      version: VERSION,
      kubernetes: version,
      port: (server.server.address() as AddressInfo).port,
      tls: pair !== undefined,
    },
    'API started',
  );
}

main().catch((error) => {
  console.error(startFailure('berth-api', error));
  process.exit(1);
});
