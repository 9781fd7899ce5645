import { pino } from 'pino';
import { ConfigError, parseConfig } from '../core/config.ts';
import { KubeClient } from '../core/kube/client.ts';
import { loadConnection } from '../core/kube/config.ts';
import { requireSupportedVersion } from '../core/kube/version.ts';
import { systemClock, systemRandom } from '../core/system.ts';
import { controllerConfig } from './config.ts';
import { Controller } from './controller.ts';
import { serveHealth } from './health.ts';

/** A stop that takes longer is ended: what it was doing, a successor finds and goes on with. */
const STOP_LIMIT_MS = 9_000;

async function main(): Promise<void> {
  const config = parseConfig(controllerConfig, process.env);
  const log = pino({ level: config.BERTH_LOG_LEVEL, base: null, timestamp: pino.stdTimeFunctions.isoTime });
  const connection = await loadConnection();
  const api = new KubeClient({
    connection,
    clock: systemClock,
    random: systemRandom,
    log,
    userAgent: 'berth-controller/0.1',
  });
  const version = await requireSupportedVersion(api);
  const controller = new Controller({
    api,
    config,
    namespace: config.BERTH_NAMESPACE ?? connection.namespace,
    clock: systemClock,
    random: systemRandom,
    log,
  });
  const health = await serveHealth(
    { port: config.BERTH_HEALTH_PORT, host: config.BERTH_HEALTH_HOST },
    () => controller.problem,
  );
  log.info({ kubernetes: version, health: health.address() }, 'controller started');

  const stop = (signal: NodeJS.Signals) => {
    log.info({ signal }, 'stopping');
    setTimeout(() => process.exit(1), STOP_LIMIT_MS).unref();
    controller.stop().then(
      () => process.exit(0),
      (error) => {
        log.error({ err: error }, 'stopping failed');
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  await controller.start();
}

main().catch((error) => {
  if (error instanceof ConfigError) console.error(error.message);
  else console.error(`berth-controller: ${error instanceof Error ? (error.stack ?? error.message) : error}`);
  process.exit(1);
});
