import { Counter, Histogram, Registry } from 'prom-client';
import type { KubeClientOptions } from '../core/kube/client.ts';
import { measureRequests } from '../core/program/metrics.ts';

/** Route of a request, as the OpenAPI document has it; the empty string for no route. */
export interface Answered {
  method: string;
  route: string;
  code: number;
  seconds: number;
}

/** Metrics of the HTTP API, shown at /metrics. */
export class ApiMetrics {
  readonly registry = new Registry();
  /** Callback for the `KubeClient`. */
  readonly onRequest: NonNullable<KubeClientOptions['onRequest']>;
  readonly #requests: Counter<'method' | 'route' | 'code'>;
  readonly #durations: Histogram<'method' | 'route'>;

  constructor() {
    const registers = [this.registry];
    this.onRequest = measureRequests(this.registry);
    this.#requests = new Counter({
      name: 'berth_http_requests_total',
      help: 'Requests that were answered, by the route of the OpenAPI document, empty where there is none, and HTTP status.',
      labelNames: ['method', 'route', 'code'],
      registers,
    });
    this.#durations = new Histogram({
      name: 'berth_http_request_duration_seconds',
      help: 'How long requests took, those that wait for a turn or follow a log included.',
      labelNames: ['method', 'route'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    });
  }

  answered({ method, route, code, seconds }: Answered): void {
    this.#requests.inc({ method, route, code: String(code) });
    this.#durations.observe({ method, route }, seconds);
  }
}
