import type { TerminalSize } from '../core/enter/hello.ts';
import type { Clock, Random } from '../core/runtime.ts';
import type { RawTerminal, RawTerminalOptions } from './enter/terminal.ts';

/** Stdin of a command. */
export interface Stdin extends AsyncIterable<Buffer> {
  /**
   * True for a pipe or a regular file: somebody has connected them to this command. A terminal, /dev/null and a socket
   * say nothing: child processes of Node have an open socket as stdin by default.
   */
  readonly isPiped: boolean;
  /** Ends the reading, which may wait for bytes, so that the process can end. */
  close(): void;
}

/** A terminal that stdout or stderr is. */
export interface Terminal {
  /** Width in characters. */
  columns: number;
  /** False where the user wants no colour: https://no-color.org. */
  hasColour: boolean;
}

/** The terminal that both stdin and stdout are, which a command in a session can have. */
export interface Console {
  /** Its size now. */
  readonly size: TerminalSize;
  /** Takes it: what is typed comes byte by byte, until it is closed. */
  take(heard: Pick<RawTerminalOptions, 'onSize' | 'onLeave'>): Promise<RawTerminal>;
}

/** Surroundings of a command. */
export interface Cli {
  /** Name under which the program was called: `berth` or `kubectl session`. */
  name: string;
  env: NodeJS.ProcessEnv;
  /** Absolute path of the caller's directory. */
  cwd: string;
  stdin: Stdin;
  /**
   * Writes data to stdout, made safe if that is a terminal; resolves when the reader has room again. Discards it once stdout
   * cannot be written.
   */
  out(data: string | Buffer): Promise<void>;
  /** Writes bytes as they are, to a terminal too; resolves when the reader has room again. Discards them once stdout cannot be written. */
  write(to: 'stdout' | 'stderr', bytes: Buffer): Promise<void>;
  /** Writes a line for people to stderr, without control characters but line feeds. */
  say(line: string): void;
  /**
   * Shows a line under the others of stderr until something else is written; an empty one shows none. Undefined where
   * stderr is no terminal, or one that cannot erase.
   */
  status?: ((line: string) => void) | undefined;
  /** The terminal that stdout is, as it is now; undefined where stdout is none. */
  readonly terminal?: Terminal | undefined;
  /** The terminal that stderr is; undefined where stderr is none. */
  readonly messages?: Terminal | undefined;
  /**
   * Asks a question whose answer is yes or, by default, no. What was typed before is discarded. Undefined where stdin or
   * stderr is no terminal, so that nobody can answer. Rejects on Ctrl-C, and with the signal's reason.
   */
  ask?: ((question: string, signal?: AbortSignal) => Promise<boolean>) | undefined;
  /** Undefined where stdin or stdout is no terminal. */
  readonly console?: Console | undefined;
  clock: Clock;
  random: Random;
  /**
   * Signal that the first Ctrl-C, SIGTERM or SIGHUP aborts, with an `Interrupted`; the second one ends the process. A stdout
   * that cannot be written aborts it, too, with an `OutputLost`.
   */
  interrupted: AbortSignal;
}

/** Flags of every command that talks to a cluster. */
export interface ClusterFlags {
  namespace?: string;
  kubeconfig?: string;
  context?: string;
  /** URL of Berth's HTTP API, used instead of a kubeconfig. */
  server?: string;
  tokenFile?: string;
  certificateAuthority?: string;
  allowPlainText?: boolean;
}
