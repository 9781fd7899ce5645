import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { KubeClientOptions } from '../core/kube/client.ts';
import { measureRequests } from '../core/program/metrics.ts';
import type { Exceeded } from './limits/slots.ts';

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
  /** Slots in use, by the kind of request; read whenever the metrics are. */
  openRequests: () => { kind: string; used: number }[] = () => [];
  /** Bytes of bodies, contents and lists in memory; read whenever the metrics are. */
  heldBytes: () => number = () => 0;
  /** End of the validity of the certificate in use, milliseconds since the epoch; undefined without TLS. */
  certificateEnd: number | undefined;
  readonly #requests: Counter<'method' | 'route' | 'code'>;
  readonly #durations: Histogram<'method' | 'route'>;
  readonly #refused: Counter<'limit' | 'of'>;
  readonly #stalled: Counter;
  readonly #reloads: Counter<'result'>;

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
    this.#refused = new Counter({
      name: 'berth_http_refused_total',
      help: 'Requests that a limit refused: of the caller, answered 429, or of all callers together, answered 503.',
      labelNames: ['limit', 'of'],
      registers,
    });
    this.#stalled = new Counter({
      name: 'berth_http_stalled_readers_total',
      help: 'Clients that were disconnected because they took nothing of their answer.',
      registers,
    });
    this.#reloads = new Counter({
      name: 'berth_http_tls_reloads_total',
      help: 'Changes of the files with certificate and key; failed: they could not be used, and the pair before serves on.',
      labelNames: ['result'],
      registers,
    });
    const metrics = this;
    new Gauge({
      name: 'berth_http_open_requests',
      help: 'Requests that are under way; waits and streams are also counted as requests.',
      labelNames: ['kind'],
      registers,
      collect() {
        for (const { kind, used } of metrics.openRequests()) this.set({ kind }, used);
      },
    });
    new Gauge({
      name: 'berth_http_held_bytes',
      help: 'Bytes in memory for the bodies of requests, for outputs, logs and artifacts that are being sent, and for lists.',
      registers,
      collect() {
        this.set(metrics.heldBytes());
      },
    });
    new Gauge({
      name: 'berth_http_tls_not_after_timestamp_seconds',
      help: 'End of the validity of the certificate in use, as Unix time; absent without TLS.',
      registers,
      collect() {
        if (metrics.certificateEnd === undefined) this.remove();
        else this.set(metrics.certificateEnd / 1000);
      },
    });
  }

  answered({ method, route, code, seconds }: Answered): void {
    this.#requests.inc({ method, route, code: String(code) });
    this.#durations.observe({ method, route }, seconds);
  }

  refused(limit: string, of: Exceeded): void {
    this.#refused.inc({ limit, of });
  }

  stalledReader(): void {
    this.#stalled.inc();
  }

  certificateReloaded(result: 'ok' | 'failed'): void {
    this.#reloads.inc({ result });
  }
}
