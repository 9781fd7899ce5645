import type { Placed } from '../../core/follow/session-events.ts';
import type { Bind, Decided } from '../../core/frames/messages.ts';
import type { KubeObject } from '../../core/kube/types.ts';
import type { Change } from '../../local/apiserver/store/versioned.ts';
import type { Run } from './cluster/agent.ts';
import type { KeptFrame, SimContainer } from './cluster/container.ts';
import type { StateContent } from './cluster/state-content.ts';

/** A call of a controller. */
export interface ControllerCall {
  process: string;
  verb: 'get' | 'list' | 'create' | 'replace' | 'patch' | 'delete';
  resource: string;
  namespace: string | undefined;
  name: string;
  /** The new object of a replace. */
  object: KubeObject | undefined;
  /** Preconditions of a delete. */
  uid: string | undefined;
  resourceVersion: string | undefined;
  fieldSelector: string | undefined;
  labelSelector?: string | undefined;
  /** Place in a list that is read page by page; absent: its beginning. */
  continue?: string | undefined;
  /** Size of a page of a list; undefined: it is read in one. */
  limit: number | undefined;
  /** Returns when the call was sent, or `agoMs` of its process's own time before; virtual milliseconds. */
  sentAt(agoMs?: number): number;
  /** Returns a version of a kind that the caches of its process had reached at that time. */
  knew(plural: string, agoMs?: number): number;
}

/** A message of a runner as it reaches a controller. */
export interface Word {
  /** The controller's process. */
  process: string;
  agoMs: number;
  /** True when the message says when the session was last active. */
  onActivity: boolean;
  /**
   * Frames of the message whose last part it brings, by their headers. `printedAt`: when the runner wrote the frame first,
   * virtual milliseconds; it may send it again later.
   */
  frames: readonly { seq: number; kind: string; printedAt: number }[];
}

/** Receives every event of the world at the moment at which it happens. */
export interface Observer {
  /** A process of a controller starts; it speaks this protocol version. */
  controllerStarted(process: string, protocol: number): void;
  /** A controller makes a call; it may never arrive. */
  sent(call: ControllerCall): void;
  /** The API server is about to carry a call out. */
  called(call: ControllerCall): void;
  /** A call has ended for the controller: by an answer, a refusal or its deadline. */
  answered(call: ControllerCall, error: Error | undefined): void;
  /** The API has accepted a write. */
  committed(change: Change): void;
  /** A runner has accepted its binding. */
  bound(bind: Bind, container: SimContainer): void;
  /** An attach of a controller's process to a container is open. */
  attached(container: SimContainer, process: string): void;
  /** It is closed, or was cut off. */
  detached(container: SimContainer, process: string): void;
  /** A message of a runner has reached a controller. */
  heard(container: SimContainer, word: Word): void;
  runStarted(run: Run, container: SimContainer): void;
  runEnded(run: Run, container: SimContainer): void;
  /** A runner is about to forget a result or a request. */
  acknowledged(frame: KeptFrame, container: SimContainer): void;
  /** A controller deletes a pod and logs the reason; `session` as namespace/name, empty where it deletes the pod for its pool. */
  gaveUp(claim: { process: string; podUID: string; why: string; session: string }): void;
  /** A controller has a session take turns again, because its state could not be had or stored; `session` as namespace/name. */
  suspensionFailed(session: string): void;
  /** A runner obeys a control line of an epoch that is over. */
  obeyed(line: string, container: SimContainer): void;
  /** An agent was told a decision. */
  told(run: Run, decided: Decided, container: SimContainer): void;
  /** The agent of a running turn has told an event. */
  talked(run: Run): void;
  /** A process that an agent left running has touched the agent's session. */
  touched(sessionUID: string): void;
  /** Work of clients in a pod of the session has begun or ended to keep it from being idle, or a client has typed. */
  clientsWorked(sessionUID: string, container: SimContainer): void;
  /** A state directory is about to be handed over. */
  packed(content: StateContent, container: SimContainer): void;
  /** A follower is told something of the session that it follows, with the place from which it goes on. */
  followerTold(follower: string, sessionUID: string, placed: Placed): void;
  /** No fault and no misfortune happens any more. */
  calmed(): void;
}
