import * as z from 'zod';
import { agent } from './agent.ts';
import {
  anyJson,
  conditions,
  count,
  dnsSubdomain,
  resourceRequirements,
  rules,
  stateRef,
  timeouts,
  timestamp,
} from './schema.ts';
import { turnPhase } from './turn.ts';

export const sessionSpec = z
  .strictObject({
    class: dnsSubdomain().default('default').describe('The SessionClass. Cannot change.'),
    agent: agent.optional().describe('How the agent is run, as far as the class lets it be overridden.'),
    image: z
      .string()
      .min(1)
      .max(512)
      .optional()
      .describe('Another image than the class’s; it must contain the runner.'),
    resources: resourceRequirements.optional(),
    timeouts: timeouts.optional(),
    suspend: z
      .boolean()
      .default(false)
      .describe('A hold: the running turn ends, the pod is given up, and turns queue until this is false.'),
    suspendRequest: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .describe('An id of your choice: a new one suspends the session once, after the turns given so far.'),
    persistence: z
      .strictObject({
        state: z.literal(true).default(true).describe('The state directory outlives the pod.'),
      })
      .default({ state: true }),
    turns: z
      .enum(['Many', 'One'])
      .default('Many')
      .describe('One: the session is finished with its first turn, and its pod is given up.'),
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
  'Suspending',
  'Suspended',
  'Finished',
  'Terminating',
]);

export const sessionStatus = z.strictObject({
  phase: sessionPhase.optional().describe('For people; programs read the conditions.'),
  conditions: conditions().optional(),
  observedGeneration: z.int().optional(),
  incarnation: count().optional().describe('How many pods the session has had; raised before each pod is created.'),
  podName: z.string().max(253).optional(),
  podUID: z.string().max(64).optional(),
  currentTurn: z.string().max(253).optional().describe('The running turn, once it has run for a second.'),
  turns: z
    .strictObject({ total: count(), succeeded: count(), failed: count() })
    .optional()
    .describe('Turns that have ended: all, Succeeded, and Failed or TimedOut.'),
  lastTurn: z
    .strictObject({
      name: z.string().max(253),
      index: count(),
      phase: turnPhase,
      output: anyJson().optional().describe('The output, where it has at most 4 KiB.'),
    })
    .optional(),
  lastActiveAt: timestamp().optional(),
  suspendHandled: z
    .strictObject({
      id: z.string().max(128),
      afterTurn: count().describe('Index of the last turn given before the request was seen.'),
    })
    .optional(),
  queue: z
    .strictObject({ since: timestamp(), reason: z.string().max(64) })
    .optional()
    .describe('Since when and why the session waits for a place.'),
  state: stateRef.optional().describe('The committed state; it only moves forward.'),
  classGeneration: z.int().optional().describe('The generation of the class that the present pod was made from.'),
  runnerVersion: z.string().max(64).optional(),
});

export type SessionSpec = z.infer<typeof sessionSpec>;
export type SessionStatus = z.infer<typeof sessionStatus>;
export type SessionPhase = z.infer<typeof sessionPhase>;
