import * as z from 'zod';
import { decision } from './approval.ts';
import { MAX_ATTEMPTS } from './limits.ts';
import { anyJson, conditions, count, digest, dnsLabel, duration, rules, stateRef, timestamp } from './schema.ts';

const TERMINAL_PHASES = ['Succeeded', 'Failed', 'Cancelled', 'TimedOut'] as const;

export const turnPhase = z.enum(['Queued', 'Running', 'AwaitingApproval', ...TERMINAL_PHASES]);

export const turnSpec = z
  .strictObject({
    session: dnsLabel().describe('Name of the Session in the same namespace. Cannot change.'),
    input: anyJson().optional().describe('Any JSON, up to 128 KiB. null when absent.'),
    timeout: duration()
      .optional()
      .describe('How long it may run, for example 90s. Default: the session’s timeouts.turn.'),
    retry: z
      .strictObject({
        maxAttempts: z.int32().min(1).max(MAX_ATTEMPTS).describe('How often the turn may be begun. Default 1.'),
      })
      .optional()
      .describe(
        'Begins the turn again when its pod was lost or evicted. For turns that may run twice: what an attempt has done by then stays done. Cannot change.',
      ),
    cancel: z
      .boolean()
      .default(false)
      .describe('true cancels the turn, queued or running. Cannot be taken back. Default false.'),
    requester: z.string().min(1).max(512).optional().describe('Who asked for it; the HTTP API sets this.'),
  })
  .meta(
    rules(
      {
        rule: 'self.session == oldSelf.session',
        message: 'the session cannot change; create a new Turn',
        fieldPath: '.session',
      },
      {
        rule: 'has(self.timeout) == has(oldSelf.timeout) && (!has(self.timeout) || self.timeout == oldSelf.timeout)',
        message: 'the timeout cannot change; create a new Turn',
      },
      {
        rule: 'has(self.retry) == has(oldSelf.retry) && (!has(self.retry) || self.retry == oldSelf.retry)',
        message: 'retry cannot change; create a new Turn',
      },
      {
        rule: 'has(self.requester) == has(oldSelf.requester) && (!has(self.requester) || self.requester == oldSelf.requester)',
        message: 'the requester cannot change',
      },
      {
        rule: '!oldSelf.cancel || self.cancel',
        message: 'a cancellation cannot be taken back; create a new Turn',
        fieldPath: '.cancel',
      },
    ),
  );

/** The turn's last question and, once a person has decided, the decision. */
const turnApproval = z.strictObject({
  id: z.string().max(64).describe('What an Approval names in spec.requestId.'),
  prompt: z.string().max(4096).describe('The question, for people.'),
  payload: anyJson().optional().describe('What the agent shows with it, up to 16 KiB.'),
  since: timestamp().describe('Since when the turn waits, or waited.'),
  process: z
    .enum(['Ended', 'Alive'])
    .describe('Alive: the agent’s process waits in its pod. Ended: a new one is started with the decision.'),
  incarnation: count().describe('Of the pod that asked.'),
  seq: count().describe('The number of its frame: a request of a lower one is an old one.'),
  ranMs: z.int().min(0).describe('Milliseconds that the turn had run by then; waiting does not count.'),
  decided: z
    .strictObject({
      decision: decision.describe('Approve or Deny.'),
      response: anyJson().optional().describe('The Approval’s spec.response.'),
      note: z.string().max(1024).optional().describe('The Approval’s spec.note.'),
      by: z.string().max(512).optional().describe('The Approval’s spec.requester.'),
      approval: z.string().max(253).describe('Name of the Approval.'),
      at: timestamp().describe('When the Approval was created.'),
    })
    .optional()
    .describe('The decision, written before the agent is told: it is told once.'),
});
export type TurnApproval = z.infer<typeof turnApproval>;

/** Settings that the turn began with. */
const granted = z.strictObject({
  timeout: duration().optional().describe('How long it may run. Waiting for a decision does not count.'),
  stall: duration().optional().describe('How long it may be silent. Absent: for ever.'),
  start: duration().optional().describe('How long its pod may take to start.'),
  approval: duration().optional().describe('How long it waits for a decision each time it asks.'),
  persist: duration().optional().describe('How long its result waits for a store that fails.'),
});
export type Granted = z.infer<typeof granted>;

export const turnStatus = z.strictObject({
  index: count()
    .optional()
    .describe(
      'The order within the session, given at first sight, from 1; absent where a session of one turn refuses it.',
    ),
  phase: turnPhase
    .optional()
    .describe('Queued, Running or AwaitingApproval, and then for ever Succeeded, Failed, Cancelled or TimedOut.'),
  conditions: conditions(),
  attempt: count().optional().describe('How often the turn was begun.'),
  incarnation: count().optional().describe('The incarnation of the session that runs it, or ran it.'),
  podUID: z.string().max(64).optional().describe('The uid of the pod that runs it, or ran it.'),
  inputDigest: digest().optional().describe('sha256 of the input that the turn was begun with.'),
  granted: granted
    .optional()
    .describe(
      'The timeouts that it was given when it began, of its own, its session’s and its class’s settings. A later change of those does not count for it.',
    ),
  startedAt: timestamp()
    .optional()
    .describe(
      'When its agent was started; known when it has run for ten seconds, has ended or asks. The condition Running says when it was given.',
    ),
  finishedAt: timestamp().optional().describe('When it ended.'),
  output: anyJson().optional().describe('The output, where it has at most 16 KiB.'),
  outputRef: z.string().max(253).optional().describe('Key of a larger output in the store, up to 8 MiB.'),
  outputBytes: z.int().min(0).optional().describe('Bytes of the output as JSON.'),
  error: z
    .strictObject({
      code: z.string().max(64).describe('One word for programs; docs/reference/reasons.md lists them all.'),
      message: z.string().max(4096).describe('What went wrong and what to do, in words.'),
    })
    .optional()
    .describe('Why it did not succeed; absent where it did.'),
  exitCode: z.int32().optional().describe('Of the agent’s process, where it ended by itself.'),
  metadata: anyJson().optional().describe('What the agent’s envelope says in metadata, up to 4 KiB.'),
  turnCount: count().optional().describe('What the agent’s envelope says in turn_count.'),
  redactions: count()
    .optional()
    .describe(
      'How often [REDACTED] took the place of something in what the turn returned: output, metadata, events, questions. Absent: never.',
    ),
  usage: z
    .strictObject({
      wall: z.number().min(0).describe('Seconds that it ran; waiting for a decision does not count.'),
      cpuSeconds: z.number().min(0).optional().describe('CPU time of its processes in seconds.'),
      peakMemoryBytes: z.int().min(0).optional().describe('The most memory that its processes had at once.'),
      processes: count().optional().describe('The most processes that ran at once.'),
    })
    .optional()
    .describe(
      'What the turn used, as far as it was measured: docs/sandbox.md. So far while it runs, from ten seconds on and about every 30 seconds; while it waits for a decision as it was last seen.',
    ),
  state: stateRef.optional().describe('The state after this turn, or as it asked, where the turn changed it.'),
  approval: turnApproval.optional().describe('What the turn asked last.'),
  log: z
    .strictObject({
      inline: z.string().max(4096).optional().describe('The text, where it has at most 4 KiB.'),
      ref: z.string().max(253).optional().describe('Key of a longer text in the store.'),
      bytes: z.int().min(0).describe('Bytes of the whole text.'),
      truncated: z.boolean().describe('Only the end of the text was kept.'),
    })
    .optional()
    .describe('What the agent printed beside its result.'),
});

const TERMINAL_LIST = TERMINAL_PHASES.map((phase) => `'${phase}'`).join(', ');
export const turnRules = rules({
  rule: `!has(oldSelf.status) || !has(oldSelf.status.phase) || !(oldSelf.status.phase in [${TERMINAL_LIST}]) || (has(self.status) && has(self.status.phase) && self.status.phase == oldSelf.status.phase)`,
  message: 'a turn that has ended stays as it ended; create a new Turn',
});

export type TurnSpec = z.infer<typeof turnSpec>;
export type TurnStatus = z.infer<typeof turnStatus>;
export type TurnPhase = z.infer<typeof turnPhase>;

/** Field selector of turns that have not ended. */
export const LIVE_TURNS = TERMINAL_PHASES.map((phase) => `status.phase!=${phase}`).join(',');

export function isTerminal(phase: TurnPhase | undefined): boolean {
  return (TERMINAL_PHASES as readonly string[]).includes(phase ?? '');
}
