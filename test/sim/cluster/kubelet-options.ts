import type { SimServer } from '../api/server.ts';
import type { Observer } from '../observer.ts';
import type { Dice } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';

/** Probabilities of the misfortunes of a pod. */
export interface PodRates {
  /** No node takes the pod for a while. */
  unschedulable: number;
  /** The pod's image cannot be pulled for a while. */
  image: number;
  /** A step of the pod's lifecycle takes long. */
  slow: number;
  /** The container cannot be started, or ends before it prints anything. */
  crash: number;
  /** An attach breaks or stalls; drawn for each piece of text. */
  breaks: number;
  /** The log loses its end when the pod is killed, or its start by rotation. */
  logLost: number;
  /** The runner reports that it is not hardened. */
  open: number;
  /** A process of the pod prints hostile text on the container's stdout. */
  hostile: number;
  /** A text of the runner is withheld, repeated, cut off or changed on its way through the attach; drawn for each. */
  garbled: number;
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
  /** True while the API and the kubelet reach each other. */
  reachable: boolean;
  /** True while the node takes no new pods. */
  cordoned: boolean;
  /** Time until which no process in its pods gets on, virtual milliseconds. */
  frozenUntil: number;
}
