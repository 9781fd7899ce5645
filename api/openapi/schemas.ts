/** Schemas of requests and answers, made of the kinds' own schemas. */
import * as z from 'zod';
import { isArtifactName } from '../../core/artifacts/name.ts';
import { COMMAND_ID } from '../../core/enter/command-start.ts';
import { eventData } from '../../core/follow/events.ts';
import { approvalSpec } from '../../core/resources/approval.ts';
import { parseDuration } from '../../core/resources/duration.ts';
import { anyJson, dnsLabel, dnsSubdomain, duration, stateRef, timestamp } from '../../core/resources/schema.ts';
import { sessionPhase, sessionSpec, sessionStatus } from '../../core/resources/session.ts';
import { turnPhase, turnSpec, turnStatus } from '../../core/resources/turn.ts';

const MAX_WAIT_MS = 60_000;
const MAX_PAGE = 100;
const RUN_WAIT = '30s';

export const namespaceParams = z.strictObject({ namespace: dnsLabel().describe('A namespace.') });
export const sessionParams = namespaceParams.extend({ session: dnsLabel().describe('Name of a session.') });
export const turnParams = sessionParams.extend({ turn: dnsSubdomain().describe('Name of a turn of the session.') });

export const artifactParams = turnParams.extend({
  name: z
    .string()
    .refine(isArtifactName, 'must be a path in BERTH_OUTPUT_DIR, for example report/index.html')
    .describe('Name of an artifact, percent-encoded with its slashes: report%2Findex.html.'),
});

export const noQuery = z.strictObject({});
const uidQuery = (of: string) =>
  z.strictObject({
    uid: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .describe(
        `UID of the ${of}, as its metadata has it: a precondition. Another ${of} that has come under the name is left alone (UIDMismatch).`,
      ),
  });
export const sessionUidQuery = uidQuery('session');
export const turnUidQuery = uidQuery('turn');
/** Query of what is done inside a session's pod. */
export const insideQuery = sessionUidQuery.extend({
  incarnation: z.coerce
    .number()
    .int()
    .min(1)
    .optional()
    .describe(
      'Incarnation of the session, as its status has it: a precondition. Another pod is left alone (PodReplaced).',
    ),
});
export const listQuery = z.strictObject({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_PAGE)
    .default(MAX_PAGE)
    .describe(
      `Most objects on a page, ${MAX_PAGE} by default. It has fewer where they are large: continue says whether there are more.`,
    ),
  continue: z.string().max(4096).optional().describe('Token from the previous page.'),
  labelSelector: z.string().max(4096).optional().describe('Label selector as for kubectl, for example team=blue.'),
});
/** Texts of a flag in a URL. A bare `?logs` has the empty text. */
export const flagText = z.enum(['true', 'false', '']);
/** A flag in a URL: true for the bare name. In the document it is a boolean. */
export const flag = (byDefault: 'true' | 'false' = 'false') =>
  flagText.default(byDefault).transform((text) => text !== 'false');

/** Phases of the listed objects: `phase=A&phase=B` or `phase=A,B`. */
const phases = <T extends z.ZodEnum>(phase: T) =>
  z
    .preprocess((given) => [given].flat().flatMap((text) => String(text).split(',')), z.array(phase))
    .optional()
    .describe('Phases: only those that are in one of them. Several are given as phase=A&phase=B, or as phase=A,B.');
const specs = (always: string) =>
  flag('true').describe(`false: of each spec only ${always}, which makes the answer smaller. Default true.`);
export const sessionListQuery = listQuery.extend({
  phase: phases(sessionPhase),
  specs: specs('class, turns and suspend'),
  parent: dnsLabel().optional().describe('Name of a session: only those that were made for it.'),
});
export const turnListQuery = listQuery.extend({ phase: phases(turnPhase), specs: specs('session and cancel') });
export const allTurnsQuery = turnListQuery.extend({
  name: dnsSubdomain().optional().describe('Name of a turn: only the turn of this name, of whichever session.'),
});
const wait = (of = 'the turn', byDefault = '') =>
  duration()
    .refine(
      (text) => !duration().safeParse(text).success || parseDuration(text) <= MAX_WAIT_MS,
      'must not be longer than 60s; ask again when it is over',
    )
    .describe(`Time to wait for the end of ${of}, at most 60s${byDefault && `; ${byDefault} by default`}.`);
export const waitQuery = z.strictObject({
  wait: wait('the turn, or for a request for an approval').optional(),
  requestId: z
    .string()
    .max(64)
    .optional()
    .describe('Id of a request for an approval that the caller knows of: the wait does not end for it.'),
});
export const commandQuery = insideQuery.extend({ wait: wait('the command').optional() });
export const runQuery = z.strictObject({
  wait: wait('the turn, or for a request for an approval', RUN_WAIT).default(RUN_WAIT),
});

/** Text of a TCP port in a URL. In the document it is an integer. */
export const portText = z.string().regex(/^[1-9]\d{0,4}$/, 'must be a number from 1 to 65535');

/** Text of 1 to 255 printable characters. */
export const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'must have 1 to 255 printable ASCII characters and no spaces')
  .describe('A repeat with the same key and body returns the object that the first made. A UUID is a good one.');

const metaKey = z
  .string()
  .max(317)
  .refine(
    (name) => !name.startsWith('berth.dev/'),
    'begins with berth.dev/, which is Berth’s own; choose another prefix',
  );
const labels = z.record(metaKey, z.string().max(63)).optional();
const annotations = z.record(metaKey, z.string().max(262_144)).optional();
const givenMeta = <T extends z.ZodType>(name: T) =>
  z.strictObject({ name: name.optional().describe('Default: given by the server.'), labels, annotations });
const sessionMeta = givenMeta(dnsLabel());
const typeMeta = (kind: string) => ({
  apiVersion: z.literal('berth.dev/v1alpha1').optional(),
  kind: z.literal(kind).optional(),
});

export const sessionCreate = z
  .strictObject({
    ...typeMeta('Session'),
    metadata: sessionMeta.default({}),
    spec: sessionSpec
      .omit({ requester: true })
      .refine(({ turns, input }) => turns !== 'One' || input !== undefined, {
        path: ['input'],
        message: 'is not set, but turns is One, and its one turn comes with the session; set it, or leave turns out',
      })
      .prefault({}),
  })
  .describe('A Session to create; what is left out has the default of its class.');

export const turnCreate = z
  .strictObject({
    ...typeMeta('Turn'),
    metadata: givenMeta(dnsSubdomain()).default({}),
    spec: turnSpec.omit({ requester: true, session: true, cancel: true }).prefault({}),
  })
  .describe('A Turn to create in the session.');

export const approvalCreate = z
  .strictObject({
    ...typeMeta('Approval'),
    metadata: z.strictObject({ labels, annotations }).default({}),
    spec: approvalSpec.omit({ requester: true, turn: true }),
  })
  .describe('A decision on what the turn asks: status.approval.requestId of the Turn is spec.requestId.');

export const runCreate = z
  .strictObject({
    metadata: sessionMeta.default({}),
    spec: sessionSpec
      .omit({ requester: true, turns: true, suspend: true, suspendRequest: true })
      .extend({ input: anyJson().describe('Input of the only turn. Any JSON, up to 128 KiB.') }),
  })
  .describe('A session for one turn: it is created, run, and finished.');

export const suspendBody = z
  .strictObject({
    hold: z
      .boolean()
      .default(false)
      .describe('true: turns queue until the session is resumed. false: a turn wakes it. Default false.'),
  })
  .prefault({});
export const noBody = z.strictObject({}).prefault({});

const shownMeta = z.strictObject({
  name: z.string(),
  namespace: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
  generation: z.int().optional(),
  creationTimestamp: timestamp(),
  deletionTimestamp: timestamp().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});
const shownState = stateRef.omit({ inline: true }).describe('The committed state, without its sealed bytes.');

export const session = z
  .strictObject({
    metadata: shownMeta,
    spec: sessionSpec,
    status: sessionStatus.extend({ state: shownState.optional() }).optional(),
  })
  .describe('A Session as it is; spec.input is left out of lists.');

export const turn = z
  .strictObject({
    metadata: shownMeta,
    spec: turnSpec,
    status: turnStatus.extend({ state: shownState.optional() }).optional(),
  })
  .describe('A Turn as it is; spec.input, status.output and the log’s text are left out of lists.');

export const approval = z
  .strictObject({ metadata: shownMeta, spec: approvalSpec })
  .describe('A decision. Whether it was taken stands in status.approval.decided of the Turn.');

export const artifactList = z
  .strictObject({
    items: z.array(eventData.artifacts.shape.artifacts.element),
    leftOut: turnStatus.shape.artifactsLeftOut,
  })
  .describe('The artifacts of a turn, in the order of their names.');

export const run = z
  .strictObject({
    session,
    turn: turn.optional().describe('Absent until the session was taken up.'),
    phase: turnPhase,
    output: anyJson().optional().describe('The whole output, also where it is too large for the Turn itself.'),
    error: turnStatus.shape.error,
  })
  .describe('A run and, where it has ended, its result.');

export const commandCreate = z
  .strictObject({
    id: z
      .string()
      .regex(COMMAND_ID, 'must have 1 to 128 letters, digits, ".", "_" and "-", and begin with a letter or digit')
      .optional()
      .describe(
        'Its id; default: one that follows from the Idempotency-Key, or a new one. A repeat with the same id and words finds the command of the same pod and starts none.',
      ),
    command: z.array(z.string()).min(1).describe('Program and arguments; no shell is between.'),
    cwd: z.string().min(1).optional().describe('Working directory; default: the agent’s.'),
    env: z.record(z.string(), z.string()).optional().describe('Variables beside the agent’s.'),
    timeoutSeconds: z.int().min(1).optional().describe('Time after which it is ended; default: an hour.'),
    stdin: z.boolean().default(false).describe('true: its input comes by POST …/input or …/attach. Default false.'),
    detach: z
      .boolean()
      .default(true)
      .describe(
        'false: it waits while its clients of …/attach have not acknowledged 8 MiB, and is ended a minute after the last has gone. Default true.',
      ),
    tty: z
      .strictObject({
        rows: z.int().min(1).max(65_535),
        columns: z.int().min(1).max(65_535),
        term: z.string().optional(),
      })
      .optional()
      .describe('It runs on a terminal of this size.'),
  })
  .describe('A command to start in the session’s pod.');
const commandExit = z
  .object({
    code: z.int().optional(),
    signal: z.string().optional(),
    reason: z.string().optional().describe('Why it was ended, where it did not end by itself.'),
    stdout: z.int().describe('Bytes of the stream.'),
    stderr: z.int(),
    lost: z.array(z.array(z.int())).describe('Ranges of positions whose output is kept no more: from, to (exclusive).'),
  })
  .describe('How a command ended.');
const commandText = z
  .strictObject({
    text: z.string().optional(),
    base64: z.string().optional().describe('In place of text where it is not UTF-8.'),
    truncated: z.int().optional().describe('Position from which on GET …/output has the rest.'),
  })
  .describe('What it printed, up to 1 MiB.');
export const command = z
  .strictObject({
    id: z.string(),
    started: z.string().describe('RFC 3339.'),
    exit: commandExit.optional().describe('Absent while it runs.'),
    stdout: commandText.optional(),
    stderr: commandText.optional(),
  })
  .describe('A command that was started, with its output where wait was given.');
export const commandListed = z
  .object({
    id: z.string(),
    command: z.array(z.string()),
    started: z.string(),
    ended: z.string().optional(),
    exit: commandExit.optional(),
    detach: z.boolean(),
    tty: z.boolean(),
  })
  .describe('A command of a session’s pod.');
export const commandList = z
  .strictObject({ items: z.array(commandListed) })
  .describe('The commands of a session’s pod.');
export const commandSignal = z.strictObject({
  signal: z.string().describe('Name of a signal, such as SIGTERM.'),
  graceSeconds: z.number().min(0).max(3600).optional().describe('Time after which all that is left is killed.'),
});
export const inputTaken = z.strictObject({ taken: z.int().describe('Position of the next byte of input.') });

const fileEntry = z.strictObject({
  name: z.string().describe('Name in the folder.'),
  nameBytes: z.string().optional().describe('The name as base64, where it is not UTF-8.'),
  type: z.enum(['file', 'folder', 'link', 'other']),
  bytes: z.int().min(0).describe('Size of a file; 0 of anything else.'),
  mode: z.string().describe('Permissions, octal.'),
  modified: timestamp().describe('Time of the last change.'),
  target: z.string().optional().describe('Target of a link.'),
});
export const pathEntry = fileEntry
  .extend({
    name: z.string().describe('Last name of the path; for a root its own.'),
    version: z.string().optional().describe('Changes with everything that is done to a file.'),
  })
  .describe('What is at a path.');
export const fileProblem = z
  .strictObject({
    name: z.string().describe('Path within the folder.'),
    reason: z
      .enum(['Pipe', 'Socket', 'Device', 'System', 'Unreadable', 'Grew', 'Shrank', 'Rewritten'])
      .describe(
        'Pipe, Socket, Device, System (of proc, sys or dev), Unreadable: it is not in the archive. Grew: the archive has its beginning. Shrank: its end is filled with zeros. Rewritten: it changed while it was read.',
      ),
  })
  .describe('An entry of a folder that its archive does not have as it was.');
export const fileList = z.strictObject({ items: z.array(fileEntry) }).describe('What a folder has.');
export const fileWritten = z
  .strictObject({
    bytes: z.int().describe('Bytes that were written.'),
    sha256: z
      .string()
      .describe('SHA-256 of the content, hex; of a folder that of the contents of its files one after the other.'),
    kept: z
      .enum(['State', 'Volume', 'Pod'])
      .describe(
        'State: durable with the end of the next turn, or with the suspension. Volume: as long as the session’s volume. Pod: gone with the pod.',
      ),
    durable: z
      .boolean()
      .describe(
        'Whether it outlives the pod as things are now. What is kept as State is not durable yet: it is lost where the pod is lost before.',
      ),
  })
  .describe('What was written.');

const listOf = <T extends z.ZodType>(item: T, what: string) =>
  z
    .strictObject({ items: z.array(item), continue: z.string().optional().describe('Asks for the next page.') })
    .describe(`A page of ${what}, in the order of their names.`);
export const sessionList = listOf(session, 'sessions');
export const approvalList = listOf(approval, 'approvals');
export const turnList = listOf(turn, 'turns');

export type Shown = z.infer<typeof shownMeta>;
