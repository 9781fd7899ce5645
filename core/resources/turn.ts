import * as z from 'zod';
import { LEFT_OUT_REASONS } from '../artifacts/packed.ts';
import { decision } from './approval.ts';
import {
  MAX_ARTIFACT_FILES,
  MAX_ARTIFACT_NAME_BYTES,
  MAX_ATTEMPTS,
  MAX_NAMED_LEFT_OUT,
  MAX_REQUESTER,
} from './limits.ts';
import {
  anyJson,
  conditions,
  count,
  digest,
  dnsLabel,
  dnsSubdomain,
  duration,
  phaseReason,
  rules,
  stateRef,
  timestamp,
  unchanged,
} from './schema.ts';
import { TERMINAL_LIST, TURN_PHASES } from './turn-phases.ts';

export const turnPhase = z.enum(TURN_PHASES);

export const turnSpec = z
  .strictObject({
    session: dnsLabel().describe('Name of the Session in the same namespace. Cannot change.'),
    input: anyJson()
      .optional()
      .describe(
        'Input for the agent. Any JSON, up to 128 KiB. null when absent; agents that need an input refuse that.',
      ),
    timeout: duration()
      .optional()
      .describe(
        'Maximum duration of the turn, for example 90s, if the class’s overrides allow timeouts. Its maxTimeouts.turn is a ceiling. Default: the session’s timeouts.turn.',
      ),
    retry: z
      .strictObject({
        maxAttempts: z.int32().min(1).max(MAX_ATTEMPTS).describe('Maximum number of attempts. Default 1.'),
      })
      .optional()
      .describe(
        'Retries the turn when its pod was lost or evicted. Only for turns that may run twice: what an attempt did is not undone. Cannot change.',
      ),
    cancel: z
      .boolean()
      .default(false)
      .describe('true cancels the turn, queued or running. Cannot be undone. Default false.'),
    requester: z
      .string()
      .min(1)
      .max(MAX_REQUESTER)
      .optional()
      .describe('User who created the turn, if known. HTTP API and CLI set it. Cannot change.'),
  })
  .meta(
    rules(
      // CEL does not see `input`, which has no schema. `status.inputDigest` is what a turn has started with: the controller
      // ends a started turn whose input differs as InputChanged.
      {
        rule: `self.session == oldSelf.session && ${unchanged('timeout')} && ${unchanged('retry')} && ${unchanged('requester')}`,
        message: 'only cancel can change; create a new Turn',
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
  requestId: z
    .string()
    .max(64)
    .optional()
    .describe('Id of the request, which an Approval names in spec.requestId. Absent in turns of earlier releases.'),
  id: z.string().max(64).describe('The same as requestId, by its name of earlier releases.'),
  prompt: z.string().max(4096).describe('Question for people.'),
  payload: anyJson().optional().describe('Further data of the question, up to 16 KiB.'),
  since: timestamp().describe('Start of the wait.'),
  process: z
    .enum(['Ended', 'Alive'])
    .describe('Alive: the agent’s process waits in its pod. Ended: a new process starts with the decision.'),
  incarnation: count().describe('Incarnation of the pod that asked.'),
  seq: count().describe('Sequence number of the request’s frame; a request with a lower number is outdated.'),
  ranMs: z.int().min(0).describe('Milliseconds that the turn had run when it asked. Waiting does not count.'),
  decided: z
    .strictObject({
      decision: decision.describe('Approve or Deny.'),
      response: anyJson().optional().describe('spec.response of the Approval.'),
      note: z.string().max(1024).optional().describe('spec.note of the Approval.'),
      by: z.string().max(MAX_REQUESTER).optional().describe('spec.requester of the Approval.'),
      approval: z.string().max(253).describe('Name of the Approval.'),
      at: timestamp().describe('Creation time of the Approval.'),
    })
    .optional()
    .describe('Decision. It is written before the agent gets it, so that the agent gets only one.'),
});
export type TurnApproval = z.infer<typeof turnApproval>;

/** Settings that the turn began with. */
const granted = z.strictObject({
  timeout: duration().optional().describe('Maximum duration of the turn. Waiting for an approval does not count.'),
  stall: duration().optional().describe('Maximum time without output or events. Absent: no limit.'),
  start: duration().optional().describe('Maximum time for the start of its pod.'),
  approval: duration().optional().describe('Maximum wait for each approval.'),
  persist: duration().optional().describe('Maximum time that its result waits for a failing store.'),
  notBy: z
    .array(z.string().max(MAX_REQUESTER))
    .max(2)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe(
      'Users whose decisions on the turn’s requests do not count, because they asked for it; nor do those of nobody. Absent: all count.',
    ),
});
export type Granted = z.infer<typeof granted>;

/** A file that the turn left in BERTH_OUTPUT_DIR. */
const artifact = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(MAX_ARTIFACT_NAME_BYTES)
    .describe('Path in BERTH_OUTPUT_DIR, for example report/index.html.'),
  bytes: z.int().min(0).describe('Size in bytes.'),
  digest: digest().describe('sha256 of the content.'),
  executable: z.boolean().optional().describe('True if its owner may execute it. Absent: false.'),
  ref: z.string().max(253).describe('Key of the content in the store that the file is a part of.'),
  offset: z.int().min(0).describe('Number of bytes before the file in that content.'),
});
export type Artifact = z.infer<typeof artifact>;

const artifactsLeftOut = z.strictObject({
  count: count().describe('Number of entries that were left out.'),
  entries: z
    .array(
      z.strictObject({
        name: z.string().max(MAX_ARTIFACT_NAME_BYTES).describe('Path in BERTH_OUTPUT_DIR.'),
        reason: z
          .enum(LEFT_OUT_REASONS)
          .describe(
            'Symlink: it leads out of the folder, to a folder or to nothing. Special: a device, a socket or a FIFO. NotUTF8: its name is not UTF-8. NameTooLong: its path has more than 512 bytes. Unreadable: the runner may not read it. Secret: its name holds a text that is hidden.',
          ),
      }),
    )
    .max(MAX_NAMED_LEFT_OUT)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('The first of them.'),
});

export const turnStatus = z.strictObject({
  index: count()
    .optional()
    .describe(
      'Order within the session, from 1, given when the controller first sees the turn. Absent if a session with turns: One refuses the turn.',
    ),
  phase: turnPhase
    .optional()
    .describe('Queued, Running or AwaitingApproval; then, finally, Succeeded, Failed, Cancelled or TimedOut.'),
  reason: phaseReason(),
  conditions: conditions(),
  attempt: count().optional().describe('Number of attempts that were started.'),
  incarnation: count().optional().describe('Incarnation of the session that runs or ran the turn.'),
  podUID: z.string().max(64).optional().describe('UID of the pod that runs or ran the turn.'),
  inputDigest: digest().optional().describe('sha256 of the input that the turn started with.'),
  granted: granted
    .optional()
    .describe(
      'Timeouts of the turn, taken from the settings of turn, session and class when it started. Later edits do not change them. Those of a turn that waits for its pod are taken again when it starts, but for the time of the pod’s start.',
    ),
  concurrencyGroup: dnsSubdomain()
    .optional()
    .describe(
      'Concurrency group of the session when the turn started. The turn counts there until it ends, whatever the session names since.',
    ),
  startedAt: timestamp()
    .optional()
    .describe(
      'Start time of the agent. Set once the turn has run for ten seconds, asks for an approval or has ended. The condition Running has the time when the turn was given to the agent.',
    ),
  finishedAt: timestamp().optional().describe('End time of the turn.'),
  output: anyJson().optional().describe('Output, if it has at most 16 KiB.'),
  outputRef: z.string().max(253).optional().describe('Key of a larger output in the store, up to 8 MiB.'),
  outputBytes: z.int().min(0).optional().describe('Size of the output in bytes, as JSON.'),
  error: z
    .strictObject({
      code: z
        .string()
        .max(64)
        .describe('Reason in one word, for programs; docs/reference/reasons.md lists all of them.'),
      message: z.string().max(4096).describe('Cause, and what to do.'),
    })
    .optional()
    .describe('Cause of a turn that did not succeed; absent if it succeeded.'),
  exitCode: z.int32().optional().describe('Exit code of the agent’s process, if it ended by itself.'),
  metadata: anyJson().optional().describe('metadata of the agent’s envelope, up to 4 KiB.'),
  turnCount: count().optional().describe('turn_count of the agent’s envelope.'),
  redactions: count()
    .optional()
    .describe(
      'Number of times that [REDACTED] replaced text in what the turn returned: output, metadata, events, questions, artifacts. Absent: none.',
    ),
  usage: z
    .strictObject({
      wall: z.number().min(0).describe('Running time in seconds. Waiting for an approval does not count.'),
      cpuSeconds: z.number().min(0).optional().describe('CPU time of its processes in seconds.'),
      peakMemoryBytes: z.int().min(0).optional().describe('Maximum memory of all its processes together, in bytes.'),
      processes: count().optional().describe('Maximum number of processes at the same time.'),
    })
    .optional()
    .describe(
      'Resources that the turn used, as far as measured: docs/sandbox.md. Updated while it runs, after ten seconds and then about every 30 seconds. Unchanged while it waits for an approval.',
    ),
  state: stateRef
    .optional()
    .describe('State after this turn, or when it asked for an approval, if the turn changed it.'),
  approval: turnApproval.optional().describe('Last approval that the turn asked for.'),
  artifacts: z
    .array(artifact)
    .max(MAX_ARTIFACT_FILES)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe('Files that the turn left in BERTH_OUTPUT_DIR: docs/artifacts.md. Absent: none.'),
  artifactsLeftOut: artifactsLeftOut
    .optional()
    .describe('Entries of BERTH_OUTPUT_DIR that are not among the artifacts. Absent: none.'),
  log: z
    .strictObject({
      inline: z.string().max(4096).optional().describe('Text of the log, if it has at most 4 KiB.'),
      ref: z.string().max(253).optional().describe('Key of a longer text in the store.'),
      bytes: z.int().min(0).describe('Size of the whole text in bytes; 0 if the text was lost.'),
      truncated: z.boolean().describe('True if only the end of the text was kept.'),
    })
    .optional()
    .describe('Text that the agent printed, without its result.'),
});

export const turnRules = rules({
  rule: `!has(oldSelf.status) || !has(oldSelf.status.phase) || !(oldSelf.status.phase in [${TERMINAL_LIST}]) || (has(self.status) && has(self.status.phase) && self.status.phase == oldSelf.status.phase)`,
  message: 'a turn that has ended stays as it ended; create a new Turn',
});

export type TurnSpec = z.infer<typeof turnSpec>;
export type TurnStatus = z.infer<typeof turnStatus>;
