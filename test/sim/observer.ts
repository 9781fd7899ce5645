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
  /** What it replaces an object by. */
  object: KubeObject | undefined;
  /** Preconditions of a delete. */
  uid: string | undefined;
  resourceVersion: string | undefined;
  fieldSelector: string | undefined;
  /** When it was sent, in virtual milliseconds; or `agoMs` of its process's own time before. */
  sentAt(agoMs?: number): number;
  /** The version in which the caches of its process knew a kind at that time, at least. */
  knew(plural: string, agoMs?: number): number;
}

/** Something that a runner said, as it reaches a controller. */
interface Word {
  /** The controller's process. */
  process: string;
  agoMs: number;
  /** Whether it says when the session was last active. */
  onActivity: boolean;
}

/** Told of everything that really happens, at the moment it does. */
export interface Observer {
  /** A controller makes a call; it may never arrive. */
  sent(call: ControllerCall): void;
  /** The API server is about to carry a call out. */
  called(call: ControllerCall): void;
  /** A call has come to its end for the controller: with an answer, a refusal, or because it waits no longer. */
  answered(call: ControllerCall, error: Error | undefined): void;
  /** A write that the API has taken. */
  committed(change: Change): void;
  /** A runner has accepted its binding. */
  bound(bind: Bind, container: SimContainer): void;
  /** Something that a runner said has reached a controller. */
  heard(container: SimContainer, word: Word): void;
  runStarted(run: Run, container: SimContainer): void;
  runEnded(run: Run, container: SimContainer): void;
  /** A runner is about to forget a result or a request. */
  acknowledged(frame: KeptFrame, container: SimContainer): void;
  /** A controller deletes a pod, and says why. */
  gaveUp(claim: { process: string; podUID: string; why: string }): void;
  /** A runner obeys a line of an epoch that is over. */
  obeyed(line: string, container: SimContainer): void;
  /** An agent was told what somebody decided. */
  told(run: Run, decided: Decided, container: SimContainer): void;
  /** What an agent left running has touched its session. */
  touched(sessionUID: string): void;
  /** A state directory is about to be handed over. */
  packed(content: StateContent, container: SimContainer): void;
}
