/** What the programs measure alike. Loaded by the controller and the HTTP API alone: it costs 1 MB and 35 ms. */
import { Counter, collectDefaultMetrics, Gauge, type Registry } from 'prom-client';
import type { KubeClientOptions } from './kube/client.ts';
import { VERSION } from './version.ts';

/** Between two looks at the event loop's delay, milliseconds: more often would keep an idle program from sleeping. */
const LOOP_MS = 100;

/** Adds what Node and the system say of the process: `process_*` and `nodejs_*`. */
export function measureProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_MS });
}

/** Adds the release, and counts what a `KubeClient` tells the returned function. */
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
