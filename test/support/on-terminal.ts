import { type ChildProcess, spawn } from 'node:child_process';
import { eventually } from './eventually.ts';

/** Runs the program of its arguments on a terminal of its own, with its stdin as the keyboard. */
const PTY = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))';

/** A shell command on a terminal of its own. */
export class OnTerminal {
  readonly #child: ChildProcess;
  /** Resolves to the exit code. */
  readonly ended: Promise<number | null>;
  /** Everything that the terminal shows: stdout and stderr are one there. */
  shown = '';

  constructor(command: string, env: NodeJS.ProcessEnv, cwd?: string) {
    this.#child = spawn('python3', ['-c', PTY, 'sh', '-c', command], {
      env: { ...process.env, NO_COLOR: '', TERM: 'xterm', ...env },
      ...(cwd === undefined ? {} : { cwd }),
      stdio: ['pipe', 'pipe', 'inherit'],
      timeout: 180_000,
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      this.shown += chunk;
    });
    this.ended = new Promise((resolve) => this.#child.on('close', resolve));
  }

  types(text: string): void {
    this.#child.stdin?.write(text);
  }

  says(text: string | RegExp) {
    const shows = () => (typeof text === 'string' ? this.shown.includes(text) : text.test(this.shown));
    return eventually(shows, { what: `the terminal shows ${text}` }).catch((error) => {
      throw new Error(`${error.message}: ${JSON.stringify(this.shown)}`);
    });
  }
}
