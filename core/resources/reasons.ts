const turnErrors = {
  Cancelled: 'The turn was cancelled before it had a result.',
  RequesterUnknown:
    'The turn asked for a decision, but its class has selfApproval: Refused and its spec.requester is absent, so nobody knows who may not decide. Create turns that ask with a requester.',
  ApprovalTimeout: 'The request for an approval was not decided within timeouts.approval.',
  TurnTimedOut: 'The turn ran longer than its timeout and was stopped.',
  Stalled: 'The turn wrote nothing and told nothing for timeouts.stall, and was stopped.',
  AgentFailed: 'The agent said that it failed, or ended with a non-zero exit code.',
  MissingEnvelope:
    'The agent ended without a result; the message says what was found instead and how to give one. agent.result says where Berth looks for it.',
  InvalidResult: 'The agent’s result is not what agent.result asks for.',
  InputMissing:
    'The turn has no input, and its agent needs one; the message says which. Create a new Turn with it: null counts as none.',
  InvalidInput: 'The input is not what agent.input can take; the message names the field.',
  InputTooLarge: 'The input is larger than 128 KiB.',
  InputTooDeep:
    'The input has more than 64 arrays and objects within each other; the message names the place. Flatten it, or pass the data as a string.',
  MemoryLimit:
    'The processes used more memory than sandbox.limits.memory, or nearly all that the pod may use, and were stopped; the message has both numbers. Raise the limit, or give the agent less to do.',
  CpuLimit: 'The processes used more CPU time than sandbox.limits.cpuSeconds and were stopped.',
  FileSizeLimit: 'A process wrote a file larger than sandbox.limits.fileSize and was stopped.',
  TooManyProcesses: 'More processes ran at once than sandbox.limits.processes; all of them were stopped.',
  LimitNotSet:
    'A limit of the sandbox cannot be set where the agent should run, so it was not started; the message names the limit.',
  CommandNotFound: 'The program in agent.command does not exist in the image.',
  CommandNotExecutable: 'The program in agent.command cannot be executed.',
  WorkingDirInvalid: 'agent.workingDir does not exist or is not a directory.',
  ResultRejected: 'The result cannot be stored: it is over a size limit.',
  StateTooLarge:
    'The state directory is larger than persistence.maxState, or than Berth can store; the last state stored still stands. Until it is smaller, or maxState is raised, the session keeps its pod; without the pod it goes on from that state.',
  ArtifactsTooLarge:
    'What the turn left in BERTH_OUTPUT_DIR has more bytes or files than artifacts.maxBytes and maxFiles of the class allow; the message has the numbers. None of it is kept, the output is. Leave less there, or have the class allow more.',
  ArtifactsNotStored:
    'What the turn left in BERTH_OUTPUT_DIR could not be stored; the message says why. The output is kept.',
  OutputTooLarge: 'The output is larger than 8 MiB.',
  StoreFull:
    'The namespace has used its share of the store, or its quota there; the message has the bytes. Delete sessions or turns there.',
  PodLost:
    'The pod went away while the turn ran; what the turn did is unknown. The session goes on from its last stored state. Give the turn again, or let spec.retry do it, if it may run twice.',
  OOMKilled:
    'The container used more memory than its limit and the kernel killed it. Raise resources.limits.memory, or give the agent less to do.',
  Evicted:
    'Kubernetes took the pod from its node while the turn ran; the message says why. Give the turn again, or let spec.retry do it, if it may run twice.',
  DiskFull:
    'The pod wrote more to its node’s disk than resources.limits.ephemeral-storage and was evicted. The session goes on from its last stored state. Raise the limit, write less, or write to a workspace on a volume.',
  InputChanged: 'spec.input is not what the turn was begun with; create a new Turn.',
  SessionReplaced:
    'The turn was meant for another session than the one that now has this name; create a new Turn for this one.',
  QueueFull:
    'As many turns of the session wait as its class allows in limits.maxQueuedTurns; wait until some have ended and give the turn again, or use more sessions.',
  SessionFinished: 'The session takes one turn only and has had it.',
  SessionDeleted: 'The session was deleted before the turn had a result.',
  SessionBroken: 'The session cannot start; its conditions say why.',
  InternalError:
    'The runner failed, or the controller fails again and again by an error of its own at this turn; the message says how. The log of the controller has the stack; report it.',
} as const;

/**
 * Reasons that Berth writes into a condition, an event or a turn's error, each with the sentence that explains it. A
 * reader who meets one in `kubectl describe` finds it here and in `docs/reference/reasons.md`.
 */
export const reasons = {
  // Session: Admitted
  Admitted: 'The session holds one of the running slots and has or gets a pod.',
  AtCapacity:
    'All running slots of the installation, the class or the namespace are taken; the session waits. The message names the limit and who holds the slots.',
  CapacityUnknown: 'The controller does not know at the moment whether a running slot is free; the session waits.',
  GroupLimit: 'The concurrency group has reached its limit of running turns; the turn waits for one of them to end.',
  StoreShareUsed:
    'The namespace has used its share of the store, or its quota there, and what the session stored last time would not fit; the turn waits before it runs. The message has the bytes. Delete sessions or turns of the namespace, or have what the message names raised.',
  Held: 'spec.suspend is true: turns queue until it is set to false.',
  ClassNotFound:
    'The SessionClass that spec.class names does not exist; create it, or create a new Session with another class.',
  ClassInvalid: 'The SessionClass cannot work as it is; the message names the field.',
  NotAllowed:
    'The session or the turn sets something that its SessionClass does not allow, or the session is in a namespace that the class is not for; the message names the field.',
  TurnQuotaExceeded:
    'The Turn that spec.input is to become has no room in a resource quota of the namespace; delete Turns or have the quota raised, and the session starts.',
  InvalidSpec: 'The session cannot work as it is specified; the message names the field.',
  TurnExists:
    'The Turn that spec.input is to become cannot be created, as another of its name exists; delete that one, and the session starts.',
  NotNeeded: 'The session has no pod because nothing needs one; unless it is finished, its next turn starts it again.',

  // Session: Ready
  Starting: 'The pod is created and its runner is awaited.',
  Ready: 'The runner is bound to the session and takes turns.',
  Running: 'A turn runs.',
  Suspending: 'The pod is about to be given up; its state is stored first.',
  Preempted:
    'The session’s running slot went to one that waited for it. Its state directory is stored, its volume is kept if it has one; its other files and its processes are gone. Its next turn wakes it.',
  Suspended:
    'The session has no pod. Its state directory is stored, its volume is kept if it has one; its other files and its processes are gone. Its next turn wakes it.',
  Terminating: 'The session is being deleted.',

  // Session: events
  PodCreated: 'A pod was created for the next incarnation of the session, and for the turn that waits.',
  PodClaimed: 'The session took a pod of a pool for its next incarnation, and for the turn that waits.',
  Finished: 'The session takes no more turns: its only turn has ended, or its lifetime is over.',
  OutputThrottled:
    'The pod prints more on the stdout of its container than the controller reads, which is a channel of Berth; the pod is read with pauses, which slows its output down. Look for a program in the pod, or an image of your own, that writes there.',

  // Session: ApprovalPending
  AwaitingApproval: 'A turn asks a person and waits for the decision; `berth approve` or an Approval gives it.',
  NoRequest: 'No turn waits for a decision.',
  ApprovalIgnored:
    'An Approval counts for nothing: it names a request that its turn does not wait for, is too large, or is by whoever asked for the turn where the class refuses that.',

  // Creation by the HTTP API
  CreatedWithIdempotencyKey:
    'The HTTP API has created the object with an Idempotency-Key; as long as the event is there, a repeat of the request creates no other, even if the object was deleted.',
  IdempotencyKeyUsed:
    'The HTTP API was asked to create the object with an Idempotency-Key; the event keeps other requests from using the key for something else at the same time.',

  // Session: StatePersisted
  StateStored: 'The last state that the session reached is stored.',
  NoState: 'The session has not produced a state yet.',
  StateNotStored: 'A state could not be stored; the last one stored still stands.',
  PersistenceOff: 'persistence.state is false: nothing is stored, and what the session knows ends with its pod.',
  StateUnavailable:
    'The stored state cannot be read, and the session does not start without it; the message says why. Mend the store, or restore the state from a backup of the same session.',
  StateKeyUnknown: 'The state was sealed with a master key that the controller does not have; put that key back.',

  // Session: Finished
  RunSucceeded: 'The only turn of the session succeeded.',
  RunFailed: 'The only turn of the session did not succeed.',

  LifetimeExceeded: 'timeouts.lifetime is over: the session takes no more turns, and what ran was stopped.',

  // Session: Outdated
  SessionChanged:
    'The session’s own settings were edited after its pod was made; the next pod takes them. `berth restart` has the pod replaced.',
  ClassChanged:
    'The class was edited after the pod was made; the next pod takes the edit. `berth restart` has the pod replaced.',
  AgentFilesChanged:
    'A ConfigMap of agent.files was changed or deleted after the pod took its files; the message names it. The next incarnation takes them anew.',
  RunnerOutdated:
    'The runner in the pod speaks a version of the protocol that this release does not understand. After its turn the session is suspended, and its next turn starts in a new pod. A session that keeps no state keeps its pod; `berth restart` has that replaced.',
  UpToDate: 'The session has no pod that was made with other settings than its own and those of its class.',

  // Session: Enterable
  SocketTaken:
    'Another process of the pod listens in place of the session’s runner, so commands, files and ports of the session cannot be reached. Turns go on. The runner tries again at least every 30 s; `berth restart` has the pod replaced.',
  Enterable: 'The runner listens for clients again, after another process of the pod had its place.',

  // Session: agent.files
  AgentFilesMissing:
    'A ConfigMap that agent.files names is not there, lacks the label berth.dev/agent-files: "true" or lacks a key; the message names it. The session starts once it is there.',

  // Session: environment
  EnvironmentNotReady:
    'The Environment of spec.environment does not exist or is not built yet; the message says which. The session starts once it is ready, and holds no slot until then.',
  EnvironmentFailed:
    'The Environment of spec.environment cannot be built; the message has the reason. Correct the Environment, and create the turn again.',
  EnvironmentMismatch:
    'The image of the session has another Python than the one that the environment was built for; the message names both. Use an Environment with the class and the image of the session.',
  EnvironmentUnavailable:
    'The archive of the environment cannot be read, so the session does not start; the message says why. Delete the session that built it, and it is built again.',

  // Session: a start with a pod of a pool
  ClaimLost:
    'The pod that the session was to take from a pool is gone, is another session’s or does not answer. The session starts with a pod of its own at once, and no attempt is counted.',

  // SessionPool: Ready
  PoolFull: 'All pods that the pool is to keep are ready.',
  PoolFilling:
    'Pods of the pool start; sessions take those that are ready, and start with pods of their own otherwise.',
  PoolGivesWay:
    'Sessions wait for slots, quota or nodes that pods of the pool would take. The pool gives up pods, and is filled again afterwards.',
  PoolTooLarge:
    'The pool asks for more pods than there can be running slots for its class and namespace; the message names the limit. Lower spec.replicas, or raise the limit.',
  PoolAtCapacity: 'The running slots are taken; the pool is filled when some are free. The message names the limit.',
  PoolOutdated: 'Pods of the pool were made from an earlier version of the class; they are replaced.',
  PoolPodsFail: 'Pods of the pool do not start. They are tried again after growing pauses; the message has the reason.',

  // Environment: Ready
  NotBuilt: 'No session has needed the environment yet. It is built when one does.',
  Building: 'A session builds the environment; the session’s log shows the progress.',
  BuildFailed: 'The build failed; the message has the error.',
  BuildRefused:
    'The API server refuses the session that builds the environment; the message has its words. It is tried again.',
  Unsolvable:
    'No set of packages fits the requirements and the Python of the image; the message has the resolver’s explanation.',
  IndexUnreachable:
    'The package index cannot be reached or fails. The build is tried again, after growing pauses. Check that the class’s network lets its pods reach the index.',
  IndexRefused:
    'The package index refuses the request (401 or 403). Correct the credentials of the class’s environments.',
  HashMismatch:
    'A package does not match its digest: the index has another file, or the requirement names another digest.',
  PythonMissing: 'The image has another Python than spec.python asks for, or none.',
  UvMissing: 'The machine of the embedded cluster has no uv. Install it, or set BERTH_UV to its path.',
  RequirementInvalid: 'A requirement is not of the form name[extra] specifier; marker.',
  CheckFailed: 'The packages contradict each other, or the interpreter does not start with them.',
  EnvironmentTooLarge: 'The environment is larger than 64 MiB packed; the message names its largest packages.',

  // Session: RunnerHardened
  RunnerHardened: 'The agent can neither read the memory of its runner nor end it, but by the signals that end a pod.',
  RunnerNotHardened:
    'The agent can read the memory of its runner, with the keys of the session, or end it by signals: the image’s Node can be read by its user, or parts of the runner are missing. Use the runner image of this release, or a class with runner Injected.',

  // Session: AgentContained
  AgentContained: 'A keeper holds the agent’s processes: none gets away, and limits of processes apply.',
  AgentNotContained:
    'The runner has no keeper: a process of the agent that detaches itself gets away, and limits of processes cannot be set. Use the runner image of this release, or a class with runner Injected.',

  // Session: RunnerHardened, AgentContained
  NotBound: 'The session has no pod with a runner that could report it.',
  EmbeddedCluster: 'Pods of the embedded cluster are processes of your user, which are not isolated.',

  // Session: SecretsHidden
  SecretsHidden: 'All Secrets of the agent are long enough to be hidden in outputs.',
  SecretTooShort:
    'A Secret of the agent has fewer than 8 characters, so its value is not hidden in outputs and events; the message names the key. Use a longer value, or give what is no secret as a plain value.',

  // The end of a session
  Expired: 'The session was deleted as ttlAfterFinished or ttlAfterSuspended was over.',

  // Problems that keep a pod from starting
  StartFailed:
    'The pod did not become able to take turns within timeouts.start; the message says what Kubernetes reports.',
  ImageUnavailable:
    'The image cannot be pulled. Correct the image or its pull secret, or let the node reach the registry; turns wait until timeouts.start, unless waiting cannot help.',
  Unschedulable:
    'No node takes the pod; the message is the scheduler’s. Add nodes or ask for less; turns wait until timeouts.start, as autoscalers need minutes.',
  PodForbidden:
    'The API server refused the pod, its workspace volume or its network policy; the message is the server’s own. Have the policy that it names allow the pod, or ask for something else.',
  QuotaExceeded:
    'A resource quota of the namespace has no room for the pod. The session waits without holding a slot; raise the quota, or let other pods end.',
  PodConfigError:
    'The pod refers to something that does not exist, for example a Secret. Create it; turns wait until timeouts.start.',
  PodStuck:
    'The pod was told to end and its node has not confirmed that it has; its slot stays taken. See whether the node is well; if it is gone for good, delete the Node, or the pod with --force.',
  ProtocolUnsupported: 'The runner in the image speaks another version of the protocol; use the image of this release.',

  // Turn: phase Queued
  Queued: 'The turn waits for the turns before it, and for its session to be ready.',
  Retrying: 'An attempt was lost with its pod; the next one that spec.retry allows begins after a pause.',
  SessionNotFound:
    'No session of that name exists in the namespace. Create it, then give the turn again: a session never takes a turn that is older than it.',

  // Turn: how it ended
  Succeeded: 'The agent’s result, state and artifacts are stored.',
  ...turnErrors,
} as const;

export type Reason = keyof typeof reasons;

/** Codes that a turn's error has, beside those of a session that cannot start. */
export const turnErrorCodes: readonly Reason[] = [
  ...(Object.keys(turnErrors) as (keyof typeof turnErrors)[]),
  'LifetimeExceeded',
  'StartFailed',
  'StateNotStored',
];
