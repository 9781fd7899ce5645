/**
 * Every reason Berth writes into a condition, an event or a turn's error, each with the sentence that explains it. A
 * reader who meets one in `kubectl describe` finds it here and in `docs/reference/reasons.md`.
 */
export const reasons = {
  // Session: Admitted
  Admitted: 'The session holds one of the running places and has or gets a pod.',
  AtCapacity: 'All running places of the installation or class are taken; the session waits, first come, first served.',
  Held: 'spec.suspend is true: turns queue until it is set to false.',
  ClassNotFound:
    'The SessionClass that spec.class names does not exist; create it, or create a new Session with another class.',
  ClassInvalid: 'The SessionClass cannot work as it is; the message names the field.',
  NotAllowed: 'The session sets something that its SessionClass does not allow; the message names the field.',
  InvalidSpec: 'The session cannot work as it is specified; the message names the field.',
  NotNeeded: 'The session has no pod because nothing needs one: it starts again with its next turn.',

  // Session: Ready
  Starting: 'The pod is created and its runner is awaited.',
  Ready: 'The runner is bound to the session and takes turns.',
  Running: 'A turn runs.',
  Suspending: 'The pod is about to be given up; its state is stored first.',
  Suspended: 'The session has no pod; its state is stored and its next turn wakes it.',
  Terminating: 'The session is being deleted.',

  // Session: StatePersisted
  StateStored: 'The last state that the session reached is stored.',
  NoState: 'The session has not produced a state yet.',
  StateNotStored: 'A state could not be stored; the last one stored still stands.',
  StateKeyUnknown: 'The state was sealed with a master key that the controller does not have; put that key back.',

  // Session: Finished
  RunSucceeded: 'The only turn of the session succeeded.',
  RunFailed: 'The only turn of the session did not succeed.',

  // What keeps a pod from starting
  StartFailed:
    'The pod did not become able to take turns within timeouts.start; the message says what Kubernetes reports.',
  ImageUnavailable: 'The image cannot be pulled.',
  Unschedulable: 'No node takes the pod.',
  PodForbidden: 'The API server refused the pod; the message is the server’s own.',
  QuotaExceeded: 'A resource quota has no room for the pod; the session waits.',
  PodConfigError: 'The pod refers to something that does not exist, for example a Secret.',
  ProtocolUnsupported: 'The runner in the image speaks another version of the protocol; use the image of this release.',

  // Turn: phase Queued
  Queued: 'The turn waits for the turns before it, and for its session to be ready.',
  SessionNotFound: 'No session of that name exists in the namespace.',

  // Turn: how it ended
  Succeeded: 'The agent’s result and state are stored.',
  Cancelled: 'The turn was cancelled before it had a result.',
  TurnTimedOut: 'The turn ran longer than its time-out and was stopped.',
  AgentFailed: 'The agent said that it failed, or ended with a non-zero exit code.',
  MissingEnvelope: 'The agent ended without a result between the markers.',
  InvalidResult: 'The agent’s result is not what agent.result asks for.',
  InvalidInput: 'The input is not what agent.input can take; the message names the field.',
  InputTooLarge: 'The input is larger than 128 KiB.',
  CommandNotFound: 'The program in agent.command does not exist in the image.',
  CommandNotExecutable: 'The program in agent.command cannot be executed.',
  WorkingDirInvalid: 'agent.workingDir does not exist or is not a directory.',
  ResultRejected: 'The result cannot be stored: it is over a size limit.',
  OutputTooLarge: 'The output is larger than 8 MiB.',
  StoreFull: 'The blob store has reached its ceiling.',
  PodLost:
    'The pod went away while the turn ran; what the turn did is unknown. The session goes on from its last stored state.',
  SessionReplaced: 'The turn is older than the session that now has this name.',
  SessionFinished: 'The session takes one turn only and has had it.',
  SessionDeleted: 'The session was deleted before the turn ran.',
  SessionBroken: 'The session cannot start; its conditions say why.',
  InternalError: 'The runner failed; the message says how.',
} as const;

export type Reason = keyof typeof reasons;
