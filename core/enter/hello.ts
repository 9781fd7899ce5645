/** What a client asks of a running session, and the answers, as JSON in frames. */
import { RUNNER_DIRECTORY } from '../resources/names.ts';

/** Path of the helper in a session's container, which is started without arguments. */
export const HELPER_PATH = `${RUNNER_DIRECTORY}/bin/berth-enter`;

/** Directories of a session that have a name for those outside. */
export const ROOTS = ['work', 'workspace', 'state', 'output', 'agent'] as const;
export type Root = (typeof ROOTS)[number];
/** Those that can be written to from outside. */
export const WRITABLE_ROOTS = ['work', 'workspace', 'state'] as const satisfies readonly Root[];

export interface TerminalSize {
  rows: number;
  columns: number;
}

/** How to start a command. The same id with other words is refused with `Conflict`. */
export interface CommandStart {
  command: string[];
  /** Working directory; default: the agent's. */
  cwd?: string;
  /** Variables beside the agent's, by name. */
  env?: Record<string, string>;
  /** Time after which it is ended; default: the class's. */
  timeoutSeconds?: number;
  /** True: it never waits for a reader, and goes on without one. */
  detach?: boolean;
  /** True: its stdin is the client's; otherwise it is empty. */
  stdin?: boolean;
  /** Given: it runs on a terminal of this size; TERM is the client's. */
  tty?: TerminalSize & { term?: string };
}

interface Addressed {
  protocol: number;
  /** UID of the session, which the pod must be bound to. */
  session: string;
  incarnation: number;
}

export type Wish =
  /** Starts the command `id`, or attaches to it: once started it is not started again. Without `start` only attaches. */
  | { want: 'command'; id: string; start?: CommandStart; from?: number; input?: boolean }
  | { want: 'commands' }
  /** With `graceMs`, SIGKILL follows to every process that is left then. Answered by `ready` with an empty object. */
  | { want: 'signal'; id: string; signal: string; graceMs?: number }
  | { want: 'list' | 'stat' | 'archive'; root: Root; path: string }
  | { want: 'read'; root: Root; path: string; offset?: number; length?: number }
  /** Connections to ports of the pod's localhost. Answered by `ready` with an empty object. */
  | { want: 'ports' }
  /** Takes one file in `data` and `end`, and answers with `end`; it gets its name when it is whole. Folders on the way are made. */
  | ({ want: 'write'; root: Root; path: string } & WriteFacts)
  /** Takes what goes into a folder: `entry`, with `data` after a file's, and `end`. `length`: bytes of all files. */
  | { want: 'fill'; root: Root; path: string; length?: number }
  /** `recursive`: a folder with all that is in it. Answers with `end`. */
  | { want: 'delete'; root: Root; path: string; recursive?: boolean };

/** What a client asks of a command: its start, or to attach to it. */
export type CommandWish = Extract<Wish, { want: 'command' }>;

/** What is known of a file before its content. */
export interface WriteFacts {
  /** Bytes. */
  length?: number;
  /** SHA-256 of the content, lower-case hex; it may come with `end` instead. */
  sha256?: string;
  /** Permissions, 0 to 0o777; default 0o644. */
  mode?: number;
  /** Time of the last change, ms since 1970; default: now. */
  modified?: number;
}

export type Hello = Addressed & Wish;

/** The answer `ready` to `want: 'command'`. */
export interface CommandReady {
  id: string;
  /** RFC 3339. */
  started: string;
  /** Position of the oldest byte of output that is kept, and of the next one. */
  first: number;
  next: number;
  /** Position of the next byte of input. */
  input: number;
}

export interface CommandExit {
  /** Exit code, where it ended by itself. */
  code?: number;
  signal?: string;
  /** Why it was ended, where it did not end by itself. */
  reason?: 'Timeout' | 'Signal' | 'MemoryLimit' | 'ProcessLimit' | 'CpuLimit' | 'NoReader' | 'PodEnd';
  /** Bytes of each stream. */
  stdout: number;
  stderr: number;
  /** Ranges of positions whose output is kept no more: from, to (exclusive). */
  lost: [number, number][];
}

/** A row of the answer to `want: 'commands'`. */
export interface CommandListed {
  id: string;
  command: string[];
  started: string;
  ended?: string;
  exit?: CommandExit;
  detach: boolean;
  tty: boolean;
}

/** Why nothing can be done with a session, a command, a file or a port. */
export const ENTER_CODES = [
  'PodReplaced',
  'NotReady',
  'Suspended',
  'Stopping',
  'Unsupported',
  'Invalid',
  'Conflict',
  'CommandNotFound',
  'CommandLost',
  'CommandFailed',
  'TooManyCommands',
  'TooManyConnections',
  'FileNotFound',
  'NotAFile',
  'NotAFolder',
  'OutsideRoot',
  'FileChanged',
  'FileFailed',
  'PortRefused',
  'PortFailed',
  'NotWritable',
  'NoSpace',
  'StateTooLarge',
  'ContentMismatch',
  'Busy',
] as const;
export type EnterCode = (typeof ENTER_CODES)[number];

export interface EnterRefusal {
  code: EnterCode;
  message: string;
  /** Field of the hello that is wrong. */
  field?: string;
}

/** Returns the refusal of a write to a root that is only read. */
export function rootProblem(root: string): EnterRefusal | undefined {
  if (WRITABLE_ROOTS.some((known) => known === root)) return undefined;
  const message = `nothing is written to ${root}; the roots that can be written to are ${WRITABLE_ROOTS.join(', ')}`;
  return { code: 'NotWritable', message, field: 'root' };
}

/** What is found at a path: the answer `ready` to what is wanted of files, and the lines of a list. */
export interface FileEntry {
  /** Last name of the path; for a root its own. */
  name: string;
  /** The name as base64, where it is not UTF-8. */
  nameBytes?: string;
  type: 'file' | 'folder' | 'link' | 'other';
  /** Size of a file; 0 of anything else. */
  bytes: number;
  /** Permissions, octal. */
  mode: string;
  /** RFC 3339. */
  modified: string;
  /** Target of a link. */
  target?: string;
  /** Changes with everything that is done to the file. Absent in lists, and where the pod's helper is of an earlier release. */
  version?: string;
}

/** An entry of a folder that is not in its archive as it was in the folder. */
export interface FileProblem {
  /** Path within the folder. */
  name: string;
  /**
   * Left out: `Pipe`, `Socket`, `Device`, `System` (of proc, sys or dev), `Unreadable`. Changed while it was read: `Grew` (the archive has its
   * beginning), `Shrank` (its end is filled with zeros), `Rewritten`.
   */
  reason: 'Pipe' | 'Socket' | 'Device' | 'System' | 'Unreadable' | 'Grew' | 'Shrank' | 'Rewritten';
}

/**
 * How long what was written or deleted stays so: `State` with the end of the next turn or the suspension, `Volume` as long as the session's
 * volume, `Pod` no longer than the pod.
 */
export type Kept = 'State' | 'Volume' | 'Pod';

/** Ends the data of a file, a list or an archive, and answers what was written or deleted. */
export interface FileEnd {
  bytes: number;
  /** Lower-case hex of the SHA-256 of the data. */
  sha256: string;
  /** The file changed while it was read: bytes were added, or others changed. */
  changed?: 'Grew' | 'Rewritten';
  /** Of what was written or deleted. */
  kept?: Kept;
  /** Number of problems of an archive, and the first of them. */
  problemCount?: number;
  problems?: FileProblem[];
}
