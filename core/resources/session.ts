import * as z from 'zod';
import { agent } from './agent.ts';
import { environmentArchive } from './environment.ts';
import { MAX_REQUESTER } from './limits.ts';
import { retention } from './retention.ts';
import {
  anyJson,
  conditions,
  count,
  digest,
  dnsLabel,
  dnsSubdomain,
  imageReference,
  observedGeneration,
  persistence,
  phaseReason,
  resourceRequirements,
  rules,
  stateRef,
  timeouts,
  timestamp,
  unchanged,
} from './schema.ts';
import { turnPhase } from './turn.ts';

export const sessionSpec = z
  .strictObject({
    class: dnsSubdomain().default('default').describe('Name of the SessionClass. Cannot change. Default: default.'),
    agent: agent.optional().describe('Settings of the agent. The class’s overrides say which fields may be set.'),
    image: imageReference()
      .optional()
      .describe('Image of the pod, in place of the class’s. With runner Embedded it must contain the runner.'),
    resources: resourceRequirements
      .optional()
      .describe(
        'CPU, memory and disk of the pod, if the class’s overrides allow it. Missing values come from the class. Without a class value: requests 50m, 128Mi and 64Mi, limits 1, 1Gi and 2Gi.',
      ),
    timeouts: timeouts
      .optional()
      .describe(
        'Timeouts, for example 90s, 30m or 1h30m, if the class’s overrides allow it. The class’s maxTimeouts are ceilings. Default: the class’s.',
      ),
    suspend: z
      .boolean()
      .default(false)
      .describe(
        'Holds the session: the running turn ends, the pod is deleted, and turns queue until this is false. Default false.',
      ),
    suspendRequest: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .describe('An id of your choice. A new id suspends the session once, after the turns given so far.'),
    restartRequest: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .describe(
        'An id of your choice. A pod that was made before the session had this id is replaced once: the running turn ends, then the next turn starts a new pod with the present settings.',
      ),
    persistence: persistence
      .optional()
      .describe(
        'Data that is kept when the pod goes, if the class’s overrides allow it. state and workspace cannot change.',
      ),
    priority: z
      .int32()
      .optional()
      .describe('Priority in the queue, among sessions of the same namespace; higher values come first. Default 0.'),
    concurrencyGroup: z
      .strictObject({
        name: dnsSubdomain().describe('Name of the group, the same in all its sessions.'),
        limit: z
          .int32()
          .min(1)
          .default(4)
          .describe(
            'Maximum turns of the group that run at the same time. The lowest limit of its sessions applies. Default 4.',
          ),
      })
      .optional()
      .describe(
        'Limits the running turns of all sessions of the namespace that name the same group. Other turns wait.',
      ),
    ...retention,
    turns: z
      .enum(['Many', 'One'])
      .default('Many')
      .describe(
        'Many: the session takes turns until it is deleted. One: the session is finished after its first turn, and its pod is deleted. Default Many.',
      ),
    input: anyJson()
      .optional()
      .describe('Input of a first turn that is created with the session. Any JSON, up to 128 KiB.'),
    environment: z
      .strictObject({ name: dnsLabel().describe('Name of an Environment in the session’s namespace.') })
      .optional()
      .describe(
        'Environment: Python packages on the agent’s PATH. Each incarnation uses the environment as it is when it starts.',
      ),
    build: z
      .enum(['Environment'])
      .optional()
      .describe(
        'Environment: the session builds Python packages, which its input names, and runs no agent of yours. Set by Berth. Cannot change.',
      ),
    requester: z
      .string()
      .min(1)
      .max(MAX_REQUESTER)
      .optional()
      .describe('User who created the session, if known. HTTP API and CLI set it. Cannot change.'),
    parent: z
      .strictObject({
        name: dnsLabel().describe('Name of a Session in the same namespace.'),
        uid: z
          .string()
          .min(1)
          .max(64)
          .optional()
          .describe('UID of that Session, which tells it from others that had or will have its name.'),
      })
      .optional()
      .describe(
        'Session that this one was made for: a record for people and programs, without an effect. Each is deleted without the other. Cannot change.',
      ),
  })
  .meta(
    rules(
      {
        rule: 'self.class == oldSelf.class',
        message: 'the class cannot change; create a new Session with the other class',
        fieldPath: '.class',
      },
      {
        rule: 'self.turns == oldSelf.turns',
        message: 'turns cannot change; create a new Session',
        fieldPath: '.turns',
      },
      {
        rule: '(has(self.persistence) && has(self.persistence.workspace)) == (has(oldSelf.persistence) && has(oldSelf.persistence.workspace)) && (!has(self.persistence) || !has(self.persistence.workspace) || self.persistence.workspace == oldSelf.persistence.workspace)',
        message: 'the workspace cannot change; create a new Session',
        fieldPath: '.persistence',
      },
      {
        rule: '(has(self.persistence) && has(self.persistence.state)) == (has(oldSelf.persistence) && has(oldSelf.persistence.state)) && (!has(self.persistence) || !has(self.persistence.state) || self.persistence.state == oldSelf.persistence.state)',
        message: 'whether there is a state cannot change; create a new Session',
        fieldPath: '.persistence',
      },
      {
        rule: unchanged('build'),
        message: 'build cannot change; create a new Session',
        fieldPath: '.build',
      },
      {
        rule: '!has(self.build) || (!has(self.environment) && !has(self.agent))',
        message: 'a session that builds runs no agent in an environment; leave agent and environment out',
        fieldPath: '.build',
      },
      {
        rule: unchanged('parent'),
        message: 'the parent cannot change; create a new Session',
        fieldPath: '.parent',
      },
      {
        rule: unchanged('requester'),
        message: 'the requester cannot change; create a new Session',
        fieldPath: '.requester',
      },
    ),
  );

export const sessionPhase = z.enum([
  'Queued',
  'Starting',
  'Ready',
  'Running',
  'AwaitingApproval',
  'Suspending',
  'Suspended',
  'Finished',
  'Terminating',
]);

export const sessionStatus = z.strictObject({
  phase: sessionPhase.optional().describe('Phase for people; programs read the conditions.'),
  reason: phaseReason(),
  phaseSince: timestamp().optional().describe('Start of the phase.'),
  conditions: conditions(),
  observedGeneration: observedGeneration(),
  incarnation: count()
    .optional()
    .describe('Number of pods that the session has had; increased before each pod is created.'),
  podName: z
    .string()
    .max(253)
    .optional()
    .describe('Name of the current pod, in the same namespace; absent without a pod.'),
  podUID: z.string().max(64).optional().describe('UID of the current pod.'),
  currentTurn: z.string().max(253).optional().describe('Name of the running turn, once it has run for a second.'),
  turns: z
    .strictObject({
      total: count().describe('Number of ended turns.'),
      succeeded: count().describe('Number of turns that Succeeded.'),
      failed: count().describe('Number of turns that Failed or TimedOut.'),
    })
    .optional()
    .describe('Counts of ended turns.'),
  lastTurn: z
    .strictObject({
      name: z.string().max(253).describe('Name of the Turn.'),
      index: count().describe('Index of the Turn, from 1.'),
      phase: turnPhase.describe('Phase in which it ended.'),
      code: z.string().max(64).optional().describe('Code of its error; absent if it succeeded.'),
      output: anyJson().optional().describe('Output, if it has at most 4 KiB.'),
    })
    .optional()
    .describe('The turn that ended last.'),
  lastActiveAt: timestamp()
    .optional()
    .describe(
      'Time of the last activity: a turn was created, started or ended, somebody touched the session, or its agent was active.',
    ),
  suspendHandled: z
    .strictObject({
      id: z.string().max(128).describe('The id in the request.'),
      afterTurn: count().describe('Index of the last turn given before the request was observed.'),
      done: z
        .boolean()
        .optional()
        .describe(
          'True once the request has suspended the session. A request is carried out once, even if its turn asks for another approval.',
        ),
    })
    .optional()
    .describe('The spec.suspendRequest that was observed last.'),
  queue: z
    .strictObject({
      position: count()
        .optional()
        .describe(
          'Position in the queue, from 1, among all sessions that wait for a slot. Updated every 10 s at the head of the queue, less often further back.',
        ),
      since: timestamp().describe('Start of the wait.'),
      reason: z.string().max(64).describe('Reason in one word; docs/reference/reasons.md lists all of them.'),
      holders: z
        .array(
          z.strictObject({
            name: z.string().max(320).describe('Session that holds a slot, as namespace/name.'),
            since: timestamp().describe('Time since when it holds the slot.'),
          }),
        )
        .max(8)
        .optional()
        .describe('Sessions that hold the slots, not all of them.'),
    })
    .optional()
    .describe('Wait of the session for a slot.'),
  startFailures: z
    .strictObject({
      count: count().describe('Number of failed starts.'),
      reason: z.string().max(64).describe('Reason of the last failure, in one word.'),
      message: z.string().max(1024).describe('Details of the last failure.'),
      since: timestamp().describe('Time of the first failure.'),
      at: timestamp().describe('Time of the last failure.'),
      incarnation: count().describe('Incarnation that failed last.'),
    })
    .optional()
    .describe(
      'Consecutive failed starts. Each one lengthens the wait before the next start. Absent after a successful start.',
    ),
  state: stateRef.optional().describe('Last committed state; it only moves forward.'),
  agentFiles: z
    .array(
      z.strictObject({
        configMap: z.string().max(253).describe('Name of the ConfigMap.'),
        digest: z.string().max(64).describe('SHA-256 of the content that the current incarnation got.'),
      }),
    )
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['configMap'] })
    .optional()
    .describe('ConfigMaps whose files the current pod has.'),
  environment: z
    .strictObject({
      name: dnsLabel().describe('Name of the Environment.'),
      hash: digest().describe('Hash of the environment.'),
      archive: environmentArchive.describe('Location of the packed environment in the store.'),
    })
    .optional()
    .describe('Environment that the current pod has. Its archive is kept as long as it is named here.'),
  classGeneration: z.int().optional().describe('Generation of the class that the current pod was created from.'),
  settingsDigest: digest()
    .optional()
    .describe(
      'SHA-256 of the session’s own settings that the current pod was created with and that an edit does not change.',
    ),
  restartRequest: z
    .string()
    .max(128)
    .optional()
    .describe('The spec.restartRequest that the current pod was created with.'),
  runnerVersion: z.string().max(64).optional().describe('Release of the runner in the current pod.'),
});

export type SessionSpec = z.infer<typeof sessionSpec>;
export type SessionStatus = z.infer<typeof sessionStatus>;
export type SessionPhase = z.infer<typeof sessionPhase>;
