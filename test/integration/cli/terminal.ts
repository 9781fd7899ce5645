import { spawn } from 'node:child_process';
import type { Caller } from './support.ts';

/** Runs the program of its arguments on a terminal of its own, with its stdin as the keyboard. */
const ON_TERMINAL = `
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
`;

/** A command on a terminal, with all that it has shown: stdout and stderr are one there. */
export class OnTerminal {
  screen = '';
  readonly ended: Promise<number | null>;
  readonly #type: (keys: string) => void;
  readonly kill: (signal: NodeJS.Signals) => void;

  constructor(caller: Caller, args: string[], env: NodeJS.ProcessEnv = {}) {
    const [file, words] = ['python3', ['-c', ON_TERMINAL, ...caller.command(args)]];
    const child = spawn(file, words, { cwd: caller.cwd, env: { ...caller.env, ...env }, timeout: 180_000 });
    child.stdout.on('data', (chunk) => {
      this.screen += chunk;
    });
    child.stderr.on('data', (chunk) => {
      this.screen += chunk;
    });
    this.#type = (keys) => void child.stdin.write(keys);
    this.kill = (signal) => void child.kill(signal);
    this.ended = new Promise((resolve) => child.on('close', resolve));
  }

  type(keys: string): void {
    this.#type(keys);
  }
}
