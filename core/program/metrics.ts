/**
 * Metrics that the programs have in common. Only the controller and the HTTP API load this file, because it costs 1 MB
 * and 35 ms.
 */
import { Counter, collectDefaultMetrics, Gauge, type Registry } from 'prom-client';
import type { KubeClientOptions } from '../kube/client.ts';
import { VERSION } from './version.ts';

/**
 * Interval between two samples of the event loop's delay, milliseconds: a shorter one would keep an idle program from
 * sleeping.
 */
const LOOP_MS = 100;

/** Adds the process metrics of Node and the system: `process_*` and `nodejs_*`. */
export function measureProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_MS });
}

/** Adds the release metric. The returned function counts the requests that a `KubeClient` reports to it. */
export function measureRequests(registry: Registry): NonNullable<KubeClientOptions['onRequest']> {
  new Gauge({
    name: 'berth_build_info',
    help: 'The release of this program; always 1.',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version: VERSION }, 1);
  const requests = new Counter({
    name: 'berth_api_requests_total',
    help: 'Requests to the Kubernetes API, by their HTTP status, or "error" where no answer came. Every try counts, but those that were given up by whoever asked.',
    labelNames: ['verb', 'code'],
    registers: [registry],
  });
  return (verb, code) => requests.inc({ verb, code });
}
