import type { Clock, Random } from '../core/runtime.ts';

/** What a command has of its surroundings. */
export interface Cli {
  /** How it was called: `berth` or `kubectl session`. */
  name: string;
  env: NodeJS.ProcessEnv;
  /** The caller's directory, absolute. */
  cwd: string;
  stdin: AsyncIterable<Buffer>;
  /** Data; resolves when the reader has room again. */
  out(text: string): Promise<void>;
  /** A line for people. */
  say(line: string): void;
  clock: Clock;
  random: Random;
  /** Aborted by the first Ctrl-C, with an `Interrupted`; the second one ends the process. */
  interrupted: AbortSignal;
}

/** Flags that every command which talks to a cluster has. */
export interface ClusterFlags {
  namespace?: string;
  kubeconfig?: string;
  context?: string;
}

const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';

/** A short random ending for a name, from letters that make no words. */
export function randomSuffix(random: Random, length: number): string {
  return Array.from(random.bytes(length), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
}
