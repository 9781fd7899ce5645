import * as z from 'zod';
import { anyJson, conditions, count, digest, dnsLabel, duration, rules, stateRef, timestamp } from './schema.ts';

export const TERMINAL_PHASES = ['Succeeded', 'Failed', 'Cancelled', 'TimedOut'] as const;

export const turnPhase = z.enum(['Queued', 'Running', ...TERMINAL_PHASES]);

export const turnSpec = z
  .strictObject({
    session: dnsLabel().describe('Name of the Session in the same namespace. Cannot change.'),
    input: anyJson().optional().describe('Any JSON, up to 128 KiB. null when absent.'),
    timeout: duration().optional().describe('Another time-out than the session’s timeouts.turn.'),
    cancel: z.boolean().default(false).describe('true cancels the turn, queued or running. Cannot be taken back.'),
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

export const turnStatus = z.strictObject({
  index: count().optional().describe('The order within the session, given at first sight, from 1.'),
  phase: turnPhase.optional(),
  conditions: conditions().optional(),
  attempt: count().optional(),
  incarnation: count().optional(),
  podUID: z.string().max(64).optional(),
  inputDigest: digest().optional().describe('sha256 of the input that the turn was begun with.'),
  startedAt: timestamp().optional(),
  finishedAt: timestamp().optional(),
  output: anyJson().optional().describe('The output, where it has at most 16 KiB.'),
  outputRef: z.string().max(253).optional().describe('Key of a larger output in the store, up to 8 MiB.'),
  outputBytes: z.int().min(0).optional().describe('Bytes of the output as JSON.'),
  error: z
    .strictObject({
      code: z.string().max(64).describe('docs/reference/reasons.md lists them all.'),
      message: z.string().max(4096),
    })
    .optional(),
  exitCode: z.int32().optional(),
  metadata: anyJson().optional().describe('What the agent’s envelope says in metadata, up to 4 KiB.'),
  turnCount: count().optional().describe('What the agent’s envelope says in turn_count.'),
  state: stateRef.optional().describe('The state after this turn, where the turn changed it.'),
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

export function isTerminal(phase: TurnPhase | undefined): boolean {
  return (TERMINAL_PHASES as readonly string[]).includes(phase ?? '');
}
