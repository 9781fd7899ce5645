import * as z from 'zod';
import { agent } from './agent.ts';
import { retention } from './retention.ts';
import {
  anyJson,
  conditions,
  count,
  dnsSubdomain,
  observedGeneration,
  persistence,
  resourceRequirements,
  rules,
  stateRef,
  timeouts,
  timestamp,
} from './schema.ts';
import { turnPhase } from './turn.ts';

export const sessionSpec = z
  .strictObject({
    class: dnsSubdomain()
      .default('default')
      .describe('The SessionClass. Cannot change. Default: the one named default.'),
    agent: agent.optional().describe('How the agent is run, as far as the class lets it be overridden.'),
    image: z
      .string()
      .min(1)
      .max(512)
      .optional()
      .describe('Another image than the class’s. With runner Embedded it must contain the runner.'),
    resources: resourceRequirements
      .optional()
      .describe(
        'CPU, memory and disk of the pod, as far as the class lets them be set. What is left out is the class’s, or else requests of 50m and 128Mi and limits of 1 and 1Gi.',
      ),
    timeouts: timeouts
      .optional()
      .describe(
        'Timeouts, for example 90s, 30m or 1h30m, as far as the class lets them be set and up to its maxTimeouts. Default: the class’s.',
      ),
    suspend: z
      .boolean()
      .default(false)
      .describe(
        'A hold: the running turn ends, the pod is given up, and turns queue until this is false. Default false.',
      ),
    suspendRequest: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .describe('An id of your choice: a new one suspends the session once, after the turns given so far.'),
    persistence: persistence
      .optional()
      .describe('What outlives the pod, as far as the class lets it be set. state and workspace cannot change.'),
    priority: z
      .int32()
      .optional()
      .describe('Of the sessions of a namespace that wait for capacity, higher ones come first. Default 0.'),
    concurrencyGroup: z
      .strictObject({
        name: dnsSubdomain().describe('The group’s name, the same in all its sessions.'),
        limit: z
          .int32()
          .min(1)
          .default(4)
          .describe('Turns of the group that run at once. The lowest limit of its sessions counts. Default 4.'),
      })
      .optional()
      .describe('Of all sessions of the namespace that name the same group, so many turns run at once; others wait.'),
    ...retention,
    turns: z
      .enum(['Many', 'One'])
      .default('Many')
      .describe(
        'Many: the session takes turns until it is deleted. One: the session is finished with its first turn, and its pod is given up. Default Many.',
      ),
    input: anyJson()
      .optional()
      .describe('Input of a first turn that is created with the session. Any JSON, up to 128 KiB.'),
    requester: z.string().min(1).max(512).optional().describe('Who asked for it; the HTTP API sets this.'),
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
        rule: 'has(self.requester) == has(oldSelf.requester) && (!has(self.requester) || self.requester == oldSelf.requester)',
        message: 'the requester cannot change',
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
  phase: sessionPhase.optional().describe('For people; programs read the conditions.'),
  conditions: conditions(),
  observedGeneration: observedGeneration(),
  incarnation: count().optional().describe('How many pods the session has had; raised before each pod is created.'),
  podName: z
    .string()
    .max(253)
    .optional()
    .describe('The present pod, in the same namespace; absent where there is none.'),
  podUID: z.string().max(64).optional().describe('Its uid.'),
  currentTurn: z.string().max(253).optional().describe('The running turn, once it has run for a second.'),
  turns: z
    .strictObject({
      total: count().describe('All that have ended.'),
      succeeded: count().describe('Those that are Succeeded.'),
      failed: count().describe('Those that are Failed or TimedOut.'),
    })
    .optional()
    .describe('How many turns have ended, and how.'),
  lastTurn: z
    .strictObject({
      name: z.string().max(253).describe('Its Turn.'),
      index: count().describe('Its place in the order, from 1.'),
      phase: turnPhase.describe('How it ended.'),
      output: anyJson().optional().describe('The output, where it has at most 4 KiB.'),
    })
    .optional()
    .describe('The turn that ended last.'),
  lastActiveAt: timestamp()
    .optional()
    .describe('When a turn was created, began or ended, or somebody or the agent said that it is in use.'),
  suspendHandled: z
    .strictObject({
      id: z.string().max(128).describe('The id.'),
      afterTurn: count().describe('Index of the last turn given before the request was seen.'),
      done: z
        .boolean()
        .optional()
        .describe('True once the session was suspended for it. It is carried out once, also if its turn asks again.'),
    })
    .optional()
    .describe('The spec.suspendRequest that was seen last.'),
  queue: z
    .strictObject({
      position: count()
        .optional()
        .describe('From 1, over all who wait for capacity. At most 10 s old in front, older further behind.'),
      since: timestamp().describe('Since when it waits.'),
      reason: z.string().max(64).describe('Why, in one word; docs/reference/reasons.md lists them all.'),
      holders: z
        .array(
          z.strictObject({
            name: z.string().max(320).describe('The session that holds a slot, as namespace/name.'),
            since: timestamp().describe('Since when it has it.'),
          }),
        )
        .max(8)
        .optional()
        .describe('Some of those who hold the slots that it waits for, as namespace/name, and since when.'),
    })
    .optional()
    .describe('Since when and why the session waits for a slot.'),
  startFailures: z
    .strictObject({
      count: count().describe('How many have failed.'),
      reason: z.string().max(64).describe('Why the last one failed, in one word.'),
      message: z.string().max(1024).describe('Why the last one failed, in words.'),
      since: timestamp().describe('When the first of them failed.'),
      at: timestamp().describe('When the last one failed.'),
      incarnation: count().describe('The incarnation that failed last.'),
    })
    .optional()
    .describe('Starts that failed one after the other; the next one waits the longer. Gone with the first that works.'),
  state: stateRef.optional().describe('The committed state; it only moves forward.'),
  agentFiles: z
    .array(
      z.strictObject({
        configMap: z.string().max(253).describe('Its name.'),
        digest: z.string().max(64).describe('SHA-256 of its content when the present incarnation took it.'),
      }),
    )
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['configMap'] })
    .optional()
    .describe('The ConfigMaps whose files the present pod has.'),
  classGeneration: z.int().optional().describe('The generation of the class that the present pod was made from.'),
  runnerVersion: z.string().max(64).optional().describe('The release of the runner in the present pod.'),
});

export type SessionSpec = z.infer<typeof sessionSpec>;
export type SessionStatus = z.infer<typeof sessionStatus>;
export type SessionPhase = z.infer<typeof sessionPhase>;
