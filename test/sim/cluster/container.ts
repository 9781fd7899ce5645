import type { Bind } from '../../../core/frames/messages.ts';
import type { AttachOptions, PodStream, StreamEnd } from '../../../core/kube/types.ts';
import type { Visit } from '../../../runner/enter/visit.ts';
import type { Process } from '../scheduler.ts';
import type { Run } from './agent.ts';
import type { ClientWork } from './client-work.ts';
import type { ContainerLog } from './container-log.ts';
import type { StateContent } from './state-content.ts';

export interface Exit {
  code: number;
  reason?: string;
}

/** A frame that the runner keeps until it is acknowledged. */
export interface KeptFrame {
  kind: 'result' | 'approval';
  seq: number;
  incarnation: number;
  run: Run;
  /** Digest of the state that was sent before it. */
  state: string;
}

/** A container of a session, as the rest of the simulator sees it. */
export interface SimContainer {
  readonly process: Process;
  readonly podUID: string;
  /** Protocol version of the runner; undefined: there is none. */
  readonly protocol: number | undefined;
  /** True when the runner reports that it is hardened. */
  readonly isHardened: boolean;
  readonly content: StateContent;
  readonly log: ContainerLog;
  /** Binding of the runner; undefined while it is unbound. */
  readonly bind: Bind | undefined;
  readonly exit: Exit | undefined;
  /** True when the log could not be read as a whole for a while, or the node was lost. */
  isHardToRead: boolean;
  /** True once the pod has not passed on a text of its runner as it was. */
  hasGarbled: boolean;
  /** Time at which the runner was told to take no more turns, virtual milliseconds; undefined while it takes them. */
  readonly suspendedAt: number | undefined;
  /** What clients do inside; undefined while the runner is unbound, and where there is none. */
  readonly work: ClientWork | undefined;
  /** Takes a client's connection, as the runner's listener does. */
  enter(visit: Visit): void;
  /** Sends SIGTERM. */
  terminate(): void;
  /** Ends the process at once; data that it has not sent is lost. */
  die(exit: Exit): void;
  /** Ends every attach; data under way is lost. */
  cut(by: StreamEnd['by']): void;
  attach(options: AttachOptions, controller: Process): PodStream;
  /** Reports whether the log holds the whole result of the run. */
  hasLogged(run: Run): boolean;
}
