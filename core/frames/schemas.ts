/**
 * Schemas of the frames, from which their types follow. The runner shares the types (`messages.ts`) and must start without
 * loading a schema library, so only the controller loads this file.
 */
import * as z from 'zod';
import { isArtifactName } from '../artifacts/name.ts';
import { LEFT_OUT_REASONS } from '../artifacts/packed.ts';
import { isJsonObject } from '../json.ts';
import {
  jsonBytes,
  MAX_ARTIFACT_BYTES,
  MAX_ARTIFACT_FILES,
  MAX_ARTIFACT_NAME_BYTES,
  MAX_EVENT_BYTES,
  MAX_LEFT_RUNNING,
  MAX_NAMED_LEFT_OUT,
  MAX_PAYLOAD_BYTES,
  MAX_PROMPT_BYTES,
} from '../resources/limits.ts';
import { FRAMES, type FrameKind, MAX_PROOF_CHARS } from './catalogue.ts';

const FRAME_KINDS = Object.keys(FRAMES) as FrameKind[];

const count = () => z.int().min(0);
const uid = () => z.string().min(1).max(64);
const digest = () => z.string().regex(/^[0-9a-f]{64}$/);
const time = () => z.iso.datetime({ precision: 3 });
/**
 * Limit of a text, with room for escape marks above the limits of the kinds. The commit cuts a text that is too long
 * for a status.
 */
const text = () => z.string().max(64 * 1024);

const turn = { turn: uid(), attempt: count() };

/** Clear answer to an empty line, outside the sequence (seq 0). It alone must not cause any action. */
const ready = z.object({
  /** Random hex string per start of the runner process; the salt of the frame keys. */
  boot: z.string().regex(/^[0-9a-f]{16,128}$/),
  protocol: count(),
  runnerVersion: z.string().max(64),
  podUID: z.string().max(64),
  /** UID of the session that the runner is bound to; absent while unbound. */
  session: uid().exactOptional(),
  incarnation: count().exactOptional(),
  /** Highest sequence number assigned so far; 0 if none. */
  lastSeq: count(),
  /** Highest leadership epoch obeyed so far, 0 if none. */
  epoch: count(),
  /** Proof of this epoch, as its leader gave it; absent when it gave none. */
  proof: z.string().max(MAX_PROOF_CHARS).exactOptional(),
});

const names = () => z.array(z.string().max(4096)).max(1024);

const bound = z.object({
  runnerVersion: z.string().max(64),
  protocol: count(),
  /** Means of finding and killing descendants: the keeper, or process groups where no keeper is available. */
  containment: z.enum(['Keeper', 'ProcessGroup']),
  /**
   * True if the runner's own memory is closed to its agent and, as PID 1, no signal but SIGTERM, SIGINT and SIGHUP ends it;
   * false on a laptop.
   */
  hardened: z.boolean(),
  /**
   * Variables of `agent.env` and paths of `agent.secretFiles` whose secret is too short to be hidden in outputs, if there are any.
   */
  shortSecrets: z.object({ env: names(), files: names() }).exactOptional(),
});

const started = z.object({
  ...turn,
  /** RFC 3339 with milliseconds, by the runner's clock, as all times of a runner. */
  at: time(),
  pid: count(),
});

/**
 * Readable text of a turn after redaction. Sent before the turn's result. A controller of the protocol `packedSince` or
 * later gets the text in the binary part, compressed: core/frames/log-text.ts.
 */
const log = z.object({
  ...turn,
  /** The last 1 MiB of the text. */
  text: z.string().max(1024 * 1024),
  /** Length of the whole text, by which a reader knows how much is missing. */
  bytes: count(),
  truncated: z.boolean(),
});

/** The packed, sealed state directory: this message holds its facts, and the binary part holds the sealed bytes. */
const state = z.object({
  /** UID of the turn; undefined for the answer to `snapshot`. */
  turn: uid().exactOptional(),
  /** sha256 of the plain archive, hex. */
  digest: digest(),
  keyId: z.string().min(1).max(64),
  /** Bytes of the plain archive. */
  bytes: count(),
});

/**
 * The files that a turn left in BERTH_OUTPUT_DIR, after redaction. Their contents, one after the other and compressed, are
 * the binary part: core/artifacts/packed.ts. Sent before the turn's result.
 */
const artifacts = z.object({
  ...turn,
  files: z
    .array(
      z.object({
        name: z.string().refine(isArtifactName, { message: 'is no path of a file in a folder' }),
        bytes: count().max(MAX_ARTIFACT_BYTES),
        digest: digest(),
        executable: z.literal(true).exactOptional(),
      }),
    )
    .max(MAX_ARTIFACT_FILES)
    .refine((files) => new Set(files.map(({ name }) => name)).size === files.length, { message: 'has a name twice' })
    .refine((files) => files.reduce((sum, { bytes }) => sum + bytes, 0) <= MAX_ARTIFACT_BYTES, {
      message: `has more than ${MAX_ARTIFACT_BYTES} bytes`,
    }),
  /** Files that were left out, if any. */
  leftOut: z
    .object({
      count: count().min(1),
      entries: z
        .array(
          z.object({
            name: z
              .string()
              .refine((name) => Buffer.byteLength(name) <= MAX_ARTIFACT_NAME_BYTES, { message: 'is too long' }),
            reason: z.enum(LEFT_OUT_REASONS),
          }),
        )
        .max(MAX_NAMED_LEFT_OUT),
    })
    .exactOptional(),
});

/** Resources that a turn used. A field that was not measured is absent. */
const usage = z.object({
  /** Running time in milliseconds, without the time spent waiting for a decision. */
  wallMs: count(),
  cpuSeconds: z.number().min(0).exactOptional(),
  /** Highest memory use of all processes together that was observed. */
  peakMemoryBytes: count().exactOptional(),
  /** Highest number of processes at once that was observed. */
  processes: count().exactOptional(),
});

const error = z.object({
  /** A reason of `core/resources/reasons.ts`. */
  code: z.string().min(1).max(64),
  message: text(),
});

/**
 * The state frame that belongs to a result or a request. `Unchanged`: nothing changed since the last state that is acknowledged
 * or restored.
 */
const stateOf = () => z.union([z.object({ seq: count().min(1), digest: digest() }), z.literal('Unchanged')]);

const result = z.object({
  ...turn,
  outcome: z.enum(['Succeeded', 'Failed', 'Cancelled', 'TimedOut']),
  /** JSON value of any type; absent when there is no output. */
  output: z.unknown().exactOptional(),
  error: error.exactOptional(),
  exitCode: z.int32().exactOptional(),
  signal: z.string().max(32).exactOptional(),
  // A record of zod would leave out the key `__proto__` without a word.
  metadata: z.custom<Record<string, unknown>>(isJsonObject, { message: 'is not an object' }).exactOptional(),
  turnCount: count().exactOptional(),
  /** Number of values hidden in what the turn returned: output, metadata, events and questions. Default: 0. */
  redactions: count().exactOptional(),
  startedAt: time(),
  finishedAt: time(),
  state: stateOf(),
  /** Number of the log frame that belongs to this result; absent when the turn wrote nothing. */
  logSeq: count().min(1).exactOptional(),
  /** Number of the frame with its artifacts; absent when the turn left nothing in BERTH_OUTPUT_DIR. */
  artifactsSeq: count().min(1).exactOptional(),
  usage: usage.exactOptional(),
  /** Processes that the agent left running in the background. */
  leftRunning: z.array(z.object({ pid: count(), command: text() })).max(MAX_LEFT_RUNNING),
});

const json = (maxBytes: number) =>
  z.unknown().refine((value) => jsonBytes(value) <= maxBytes, { message: `is larger than ${maxBytes} bytes as JSON` });

/** Question of an agent to a person; strings are redacted. */
const question = z.object({
  prompt: z
    .string()
    .min(1)
    .refine((prompt) => Buffer.byteLength(prompt) <= MAX_PROMPT_BYTES, { message: 'is too long' }),
  payload: json(MAX_PAYLOAD_BYTES).exactOptional(),
  /** Number of hidden values in the question. In a frame: in everything that the turn has returned so far. Absent: none. */
  redactions: count().exactOptional(),
});

/** Frame of a turn that waits for a decision. Its state and log are as in a result. */
const approval = z.object({
  ...turn,
  /** Random id, assigned once: a repeated frame has the same id. */
  id: z.string().regex(/^[0-9a-f]{16}$/),
  ...question.shape,
  /** Alive: the agent's process waits for the decision. Ended: a new process gets the decision in its request. */
  process: z.enum(['Ended', 'Alive']),
  at: time(),
  startedAt: time(),
  /** Running time of the turn so far, without the time spent waiting, milliseconds. */
  ranMs: count(),
  state: stateOf(),
  logSeq: count().min(1).exactOptional(),
});

/** Event that an agent reports while it works, a redacted JSON value. Runners before protocol 3 send it; later ones only print it. */
const event = z.object({ ...turn, at: time(), event: json(2 * MAX_EVENT_BYTES) });

const pong = z.object({
  /** The `n` of the ping answered. */
  n: count(),
  incarnation: count(),
  turn: z
    .object({
      uid: uid(),
      attempt: count(),
      phase: z.enum(['Running', 'Collecting', 'Finished']),
      startedAt: time().exactOptional(),
      /** Milliseconds since the turn's start by the monotonic clock, which setting a clock does not change. */
      runningMs: count().exactOptional(),
      /** Id of the last approval request whose decision the agent has had. */
      told: z.string().max(64).exactOptional(),
      /** Usage of the turn so far. */
      usage: usage.exactOptional(),
    })
    .exactOptional(),
  /** Milliseconds since the last output or end of a turn, by the monotonic clock. */
  idleMs: count(),
  /**
   * Milliseconds since the last byte of a command that a client runs, or of a file that one reads, 0 while a command runs without a terminal
   * and during a transfer. Absent where there was none, and from older runners. It speaks against suspending an idle session and against nothing else.
   */
  commandIdleMs: count().exactOptional(),
  /** True while clients cannot enter the session, because another process has the name of the runner's socket; else absent. */
  closedToClients: z.literal(true).exactOptional(),
  suspended: z.boolean(),
});

/** The frames from..to are no longer held; moves the cursor like a frame. `counts` leaves artifacts out. */
const dropped = z
  .object({
    from: count().min(1),
    to: count().min(1),
    counts: z.partialRecord(z.enum(FRAME_KINDS), count()),
  })
  .refine(({ from, to }) => from <= to, { message: 'from is above to' });

const refused = z.object({
  n: count(),
  code: z.enum([
    'NotBound',
    'AlreadyBound',
    'NotRestored',
    'Busy',
    'Suspended',
    'AlreadyDone',
    'StaleEpoch',
    'UnknownTurn',
    'UnknownRequest',
    'Malformed',
    'RestoreFailed',
    'FilesFailed',
    'EnvironmentFailed',
    'EnvironmentMismatch',
    'SnapshotFailed',
  ]),
  message: text(),
});

const bye = z.object({ reason: z.enum(['Shutdown', 'Signal', 'Fault']), message: text() });

/** Schema of each frame of the catalogue. */
export const schemas = {
  ready,
  bound,
  started,
  log,
  state,
  artifacts,
  result,
  approval,
  event,
  pong,
  dropped,
  refused,
  bye,
} satisfies Record<FrameKind, z.ZodType>;

export type FrameMessages = { [K in FrameKind]: z.output<(typeof schemas)[K]> };
export type Usage = z.output<typeof usage>;
export type TurnError = z.output<typeof error>;
export type Question = z.output<typeof question>;
