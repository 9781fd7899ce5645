/**
 * Checks the messages of a pod. Its frames are sealed, but its runner shares a machine with its agent. These schemas
 * are in a file of their own, because the runner shares the other files and must start without loading a schema
 * library.
 */
import * as z from 'zod';
import { isArtifactName } from '../artifacts/name.ts';
import { LEFT_OUT_REASONS } from '../artifacts/packed.ts';
import { tooDeepAt } from '../depth.ts';
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
import type { Validate } from './decode.ts';
import type { FrameKind, FrameMessages } from './messages.ts';
import { MAX_PROOF_CHARS } from './wire.ts';

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

const FRAME_KINDS = [
  'ready',
  'bound',
  'started',
  'log',
  'state',
  'artifacts',
  'result',
  'approval',
  'event',
  'pong',
  'dropped',
  'refused',
  'bye',
] as const satisfies readonly FrameKind[];

const ready = z.object({
  boot: z.string().regex(/^[0-9a-f]{16,128}$/),
  protocol: count(),
  runnerVersion: z.string().max(64),
  podUID: z.string().max(64),
  session: uid().exactOptional(),
  incarnation: count().exactOptional(),
  lastSeq: count(),
  epoch: count(),
  proof: z.string().max(MAX_PROOF_CHARS).exactOptional(),
});

const names = () => z.array(z.string().max(4096)).max(1024);

const bound = z.object({
  runnerVersion: z.string().max(64),
  protocol: count(),
  containment: z.enum(['Keeper', 'ProcessGroup']),
  hardened: z.boolean(),
  shortSecrets: z.object({ env: names(), files: names() }).exactOptional(),
});

const started = z.object({ ...turn, at: time(), pid: count() });

const log = z.object({
  ...turn,
  text: z.string().max(1024 * 1024),
  bytes: count(),
  truncated: z.boolean(),
});

const state = z.object({
  turn: uid().exactOptional(),
  digest: digest(),
  keyId: z.string().min(1).max(64),
  bytes: count(),
});

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

const usage = z.object({
  wallMs: count(),
  cpuSeconds: z.number().min(0).exactOptional(),
  peakMemoryBytes: count().exactOptional(),
  processes: count().exactOptional(),
});

const result = z.object({
  ...turn,
  outcome: z.enum(['Succeeded', 'Failed', 'Cancelled', 'TimedOut']),
  output: z.unknown().exactOptional(),
  error: z.object({ code: z.string().min(1).max(64), message: text() }).exactOptional(),
  exitCode: z.int32().exactOptional(),
  signal: z.string().max(32).exactOptional(),
  // A record of zod would leave out the key `__proto__` without a word.
  metadata: z.custom<Record<string, unknown>>(isJsonObject, { message: 'is not an object' }).exactOptional(),
  turnCount: count().exactOptional(),
  redactions: count().exactOptional(),
  startedAt: time(),
  finishedAt: time(),
  state: z.union([z.object({ seq: count().min(1), digest: digest() }), z.literal('Unchanged')]),
  logSeq: count().min(1).exactOptional(),
  artifactsSeq: count().min(1).exactOptional(),
  usage: usage.exactOptional(),
  leftRunning: z.array(z.object({ pid: count(), command: text() })).max(MAX_LEFT_RUNNING),
});

/** Depth that only a broken runner exceeds. Older runners let agents return 256 levels. */
const MAX_DEPTH = 512;

const json = (maxBytes: number) =>
  z.unknown().refine((value) => jsonBytes(value) <= maxBytes, { message: `is larger than ${maxBytes} bytes as JSON` });

const approval = z.object({
  ...turn,
  id: z.string().regex(/^[0-9a-f]{16}$/),
  prompt: z
    .string()
    .min(1)
    .refine((prompt) => Buffer.byteLength(prompt) <= MAX_PROMPT_BYTES, { message: 'is too long' }),
  payload: json(MAX_PAYLOAD_BYTES).exactOptional(),
  redactions: count().exactOptional(),
  process: z.enum(['Ended', 'Alive']),
  at: time(),
  startedAt: time(),
  ranMs: count(),
  state: z.union([z.object({ seq: count().min(1), digest: digest() }), z.literal('Unchanged')]),
  logSeq: count().min(1).exactOptional(),
});

const event = z.object({ ...turn, at: time(), event: json(2 * MAX_EVENT_BYTES) });

const pong = z.object({
  n: count(),
  incarnation: count(),
  turn: z
    .object({
      uid: uid(),
      attempt: count(),
      phase: z.enum(['Running', 'Collecting', 'Finished']),
      startedAt: time().exactOptional(),
      runningMs: count().exactOptional(),
      told: z.string().max(64).exactOptional(),
      usage: usage.exactOptional(),
    })
    .exactOptional(),
  idleMs: count(),
  suspended: z.boolean(),
});

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

const SCHEMAS = { ready, bound, started, log, state, artifacts, result, approval, event, pong, dropped, refused, bye };

/** Fails to compile where a schema and `messages.ts` say different things. */
type Same<A, B> = [A, keyof A] extends [B, keyof B] ? ([B, keyof B] extends [A, keyof A] ? true : false) : false;
type Agreement = { [K in FrameKind]: Same<z.output<(typeof SCHEMAS)[K]>, FrameMessages[K]> };
const agreement: { [K in FrameKind]: true } = {} as Agreement;
void agreement;

/** Checks a message for the decoder. Unknown fields, which a newer runner may send, are removed. */
export const validateFrame: Validate = (kind, message) => {
  if (!Object.hasOwn(SCHEMAS, kind)) return { problem: `there is no message "${kind}"` };
  // The depth is checked before any recursive code reads the message.
  const place = tooDeepAt(message, kind, MAX_DEPTH);
  if (place !== undefined) return { problem: `${place}: nested deeper than ${MAX_DEPTH} levels` };
  const checked = SCHEMAS[kind as FrameKind].safeParse(message);
  if (checked.success) return { message: checked.data };
  const issue = checked.error.issues[0];
  return { problem: `${issue?.path.join('.') || kind}: ${issue?.message ?? 'not valid'}` };
};
