import { hostname } from 'node:os';
import { KubeClient } from '../core/kube/client.ts';
import { loadConnection } from '../core/kube/config.ts';
import { ServerClock } from '../core/kube/server-clock.ts';
import { requireSupportedVersion } from '../core/kube/server-version.ts';
import { parseConfig } from '../core/program/config.ts';
import { programLog } from '../core/program/log.ts';
import { measureProcess } from '../core/program/metrics.ts';
import { startFailure } from '../core/program/start-failure.ts';
import { VERSION } from '../core/program/version.ts';
import { systemClock, systemRandom } from '../core/system.ts';
import { check } from './check.ts';
import { controllerConfig } from './config.ts';
import { Controller } from './controller.ts';
import { serveHealth } from './health.ts';
import { ControllerMetrics } from './metrics.ts';

/** Maximum time of a stop; after it the process exits, and a successor goes on with the rest. */
const STOP_LIMIT_MS = 9_000;

/** Connections for the lease: one for the renewal that is due while one before has no answer yet. */
const LEASE_CONNECTIONS = 2;

async function main(): Promise<void> {
  const config = parseConfig(controllerConfig, process.env);
  const log = programLog(1, config.BERTH_LOG_LEVEL, config.BERTH_LOG_FORMAT);
  const connection = await loadConnection();
  const clock = new ServerClock(systemClock, log);
  const metrics = new ControllerMetrics();
  measureProcess(metrics.registry);
  const api = new KubeClient({
    connection,
    clock: systemClock,
    random: systemRandom,
    log,
    userAgent: `berth-controller/${VERSION}`,
    onAnswer: (time) => clock.answered(time),
    onRequest: metrics.onRequest,
  });
  const version = await requireSupportedVersion(api);
  const controller = new Controller({
    api,
    leaseApi: api.apart(LEASE_CONNECTIONS),
    config,
    namespace: config.BERTH_NAMESPACE ?? connection.namespace,
    holder: hostname(),
    clock,
    ownTime: systemClock.now,
    random: systemRandom,
    log,
    meter: metrics,
  });
  metrics.measured = controller;
  const health = await serveHealth(
    { port: config.BERTH_HEALTH_PORT, host: config.BERTH_HEALTH_HOST },
    { stalled: () => controller.stalled, problem: () => controller.problem, note: () => controller.note },
    metrics.registry,
  );

  const stop = (signal: NodeJS.Signals) => {
    log.info({ signal }, 'stopping');
    setTimeout(() => process.exit(1), STOP_LIMIT_MS).unref();
    controller.stop().then(
      () => process.exit(0),
      (error) => {
        log.error({ err: error }, 'shutdown failed');
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  // The handlers are set before this line: a reader of it may stop the program.
  log.info({ version: VERSION, kubernetes: version, health: health.address() }, 'controller started');
  await controller.start();
}

function failed(error: unknown): void {
  console.error(startFailure('berth-controller', error));
  process.exit(1);
}

// `controller check` runs a session and ends; `helm test` starts it.
if (process.argv[2] === 'check') check().then((code) => process.exit(code), failed);
else main().catch(failed);
