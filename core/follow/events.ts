/** Events of sessions and their turns in a stream. */
import * as z from 'zod';
import { dnsLabel, dnsSubdomain, timestamp } from '../resources/schema.ts';
import { sessionPhase, sessionStatus } from '../resources/session.ts';
import { turnPhase, turnStatus } from '../resources/turn.ts';

const session = dnsLabel().describe('Name of the session.');
const turn = dnsSubdomain().describe('Name of the turn.');
const uid = z.string().describe('UID of the object, which tells it from others that had or will have its name.');
const reason = z.string().optional().describe('Why it is not further, in one word; docs/reference/reasons.md.');
const message = z.string().optional().describe('The same for people.');
const artifact = turnStatus.shape.artifacts.unwrap().element;
const asked = turnStatus.shape.approval.unwrap().shape;

/** Data of each type of event. */
export const eventData = {
  session: z
    .strictObject({
      session,
      uid,
      phase: sessionPhase,
      reason,
      message,
      incarnation: sessionStatus.shape.incarnation,
      podName: sessionStatus.shape.podName,
      queue: sessionStatus.shape.queue.unwrap().pick({ position: true, since: true }).optional(),
    })
    .describe('Present state of a session; also after changes that are not shown here.'),
  turn: z
    .strictObject({
      session,
      turn,
      uid,
      phase: turnPhase,
      index: turnStatus.shape.index,
      reason,
      message,
      attempt: turnStatus.shape.attempt,
      incarnation: turnStatus.shape.incarnation,
      startedAt: turnStatus.shape.startedAt,
      finishedAt: turnStatus.shape.finishedAt,
      error: turnStatus.shape.error,
      exitCode: turnStatus.shape.exitCode,
      outputBytes: turnStatus.shape.outputBytes,
    })
    .describe('Present state of a turn. The output of one that Succeeded is read with GET …/turns/{turn}/output.'),
  approval: z
    .strictObject({
      session,
      turn,
      requestId: asked.id.describe('Id of the request, which a decision names in spec.requestId.'),
      prompt: asked.prompt,
      payload: asked.payload.describe('Further data of the question; until somebody has decided.'),
      since: asked.since,
      decided: asked.decided.unwrap().pick({ decision: true, note: true, by: true, at: true }).optional(),
    })
    .describe('The last approval that a turn asked for; with decided once somebody has decided.'),
  usage: z
    .strictObject({ session, turn, usage: turnStatus.shape.usage.unwrap() })
    .describe('Resources that a turn has used so far, as often as its status tells them.'),
  artifacts: z
    .strictObject({
      session,
      turn,
      artifacts: z
        .array(artifact.omit({ ref: true, offset: true }))
        .describe('The files, in the order of their names.'),
      leftOut: turnStatus.shape.artifactsLeftOut,
    })
    .describe(
      'What a turn has left in BERTH_OUTPUT_DIR, before the event of its end. A file is read with GET …/turns/{turn}/artifacts/{name}.',
    ),
  agent: z
    .strictObject({
      session,
      turn: z.string().describe('Name of the turn.'),
      at: timestamp().describe('Time on the clock of the pod’s node.'),
      event: z.unknown().describe('What the agent said: any JSON value of up to 16 KiB, redacted.'),
    })
    .describe('An event of the agent.'),
  log: z
    .strictObject({ session, text: z.string().describe('A line without its line feed; a very long one in pieces.') })
    .describe('A line that the agent printed.'),
  dropped: z
    .strictObject({ session, events: z.int().describe('How many events of the agent were lost.') })
    .describe('Events of the agent that the log of its pod no longer had.'),
  deleted: z
    .strictObject({ session, turn: turn.optional(), uid })
    .describe('The turn, or where none is named the session, was deleted.'),
};

export type EventType = keyof typeof eventData;
type Data = { [T in EventType]: z.output<(typeof eventData)[T]> };

/** An event and its type. */
export type StreamEvent = { [T in EventType]: { type: T; data: Data[T] } }[EventType];
