import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const BERTH = join(import.meta.dirname, '..', '..', '..', 'bin', 'berth');

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Started {
  child: ChildProcess;
  ended: Promise<Ended>;
}

interface Options {
  /** Text that is written to a socket, which is closed then; or a file descriptor. null: the socket stays open. */
  stdin?: string | number | null;
  env?: NodeJS.ProcessEnv;
}

/** A caller of the CLI with a BERTH_HOME and a working directory of their own. */
export class Caller {
  readonly root = mkdtempSync(join(tmpdir(), 'berth-cli-'));
  readonly home = join(this.root, 'home');
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;

  constructor(cwd: string, env: NodeJS.ProcessEnv = {}) {
    this.cwd = cwd;
    const { KUBECONFIG: _, ...own } = process.env;
    this.env = { ...own, HOME: this.root, XDG_DATA_HOME: '', BERTH_HOME: this.home, ...env };
  }

  start(args: string[], { stdin = '', env = {} }: Options = {}): Started {
    const child = spawn(BERTH, args, {
      cwd: this.cwd,
      env: { ...this.env, ...env },
      stdio: [typeof stdin === 'number' ? stdin : 'pipe', 'pipe', 'pipe'],
      timeout: 180_000,
    });
    child.stdin?.on('error', () => {}); // a command that refuses its flags does not read
    if (typeof stdin === 'string') child.stdin?.end(stdin);
    const code = new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    const { stdout, stderr } = child;
    assert.ok(stdout && stderr);
    const ended = Promise.all([code, text(stdout), text(stderr)]).then(([code, stdout, stderr]) => ({
      code,
      stdout,
      stderr,
    }));
    return { child, ended };
  }

  /** Runs a command to its end. */
  berth(args: string[], options?: Options): Promise<Ended> {
    return this.start(args, options).ended;
  }

  /** Runs a command that has to succeed; resolves with its stdout. */
  async ok(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.berth(args);
    if (code !== 0) throw new Error(`berth ${args.join(' ')} ended with ${code}: ${stderr}`);
    return stdout;
  }

  /** Runs a command that has to fail; resolves with its exit code and its stderr. */
  async fails(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.berth(args);
    assert.notEqual(code, 0, stdout);
    return `${code} ${stderr}`;
  }

  remove(): void {
    // Processes that have just been ended may still write.
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10 });
  }
}
