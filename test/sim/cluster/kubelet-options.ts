import type { SimServer } from '../api/server.ts';
import type { Observer } from '../observer.ts';
import type { Dice } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';

export interface PodRates {
  /** No node takes it for a while. */
  unschedulable: number;
  /** Its image cannot be had for a while. */
  image: number;
  /** Everything on the way to its start takes long. */
  slow: number;
  /** Its container ends before it can say anything. */
  crash: number;
  /** An attach breaks, or carries nothing for a while; for each piece of text. */
  breaks: number;
  /** The end of its log is lost with it, or the log was rotated. */
  logLost: number;
}

export interface KubeletOptions {
  scheduler: Scheduler;
  server: SimServer;
  dice: Dice;
  rates: () => PodRates;
  observer: Observer;
  trace: Trace;
}

export interface Node {
  name: string;
  /** The API and the kubelet hear each other. */
  reachable: boolean;
  /** It takes no new pods. */
  cordoned: boolean;
}
