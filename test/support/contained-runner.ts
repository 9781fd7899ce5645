import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NODE_FLAGS } from '../../core/node-flags.ts';
import { eventually } from './eventually.ts';
import { peakMemory } from './processes.ts';
import { skipWithout } from './requires.ts';
import { type HarnessOptions, noKeeper, RunnerHarness } from './runner-harness.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..');
/** Threads and processes of the runner's user: a fork bomb ends here, not at the machine's end. */
const MAX_PROCESSES = 64;

const canUnshare = () => spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0;

/** Reason why no runner can be started as in a container; false where it can. */
export const noContainer: string | false =
  noKeeper ||
  skipWithout('root', process.getuid?.() === 0, 'needs root, for another user and a PID namespace') ||
  skipWithout('pid-namespaces', canUnshare(), 'PID namespaces cannot be made here');

/** Programs as an image has them: owned by root, Node to be run but not read. Remove the folder at the end. */
export function stageImage(): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-image-'));
  chmodSync(folder, 0o755);
  const bundle = ['--bundle', '--platform=node', '--format=cjs', '--log-level=error'];
  execFileSync(join(CHECKOUT, 'node_modules/.bin/esbuild'), [
    join(CHECKOUT, 'runner/main.ts'),
    ...bundle,
    `--outfile=${join(folder, 'runner.cjs')}`,
  ]);
  copyFileSync(process.execPath, join(folder, 'node'));
  chmodSync(join(folder, 'node'), 0o711);
  copyFileSync(join(CHECKOUT, 'build', 'keeper'), join(folder, 'keeper'));
  chmodSync(join(folder, 'keeper'), 0o755);
  return folder;
}

/** The runner of such a folder, as an image starts it. */
export function stagedCommand(image: string): string[] {
  return [join(image, 'node'), ...NODE_FLAGS, join(image, 'runner.cjs')];
}

let users = 0;

/** One that nobody else has. */
function newUser(): number {
  users += 1;
  return 100_000 + (process.pid % 30_000) * 64 + users;
}

/** A command as PID 1 of a PID namespace, as a user, by default one that nobody else has, who may have so many processes and threads. */
export function containedCommand(
  command: string[],
  processes = MAX_PROCESSES,
  user = newUser(),
): { user: number; command: string[] } {
  return {
    user,
    command: [
      ...['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', '--'],
      ...['prlimit', `--nproc=${processes}`, '--'],
      ...['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--inh-caps=-all', '--'],
      ...command,
    ],
  };
}

interface ContainedOptions extends HarnessOptions {
  /** How many processes and threads its user may have. */
  processes?: number;
  /** Another runner's, which outlives this one. */
  user?: number;
}

/**
 * A runner as in a session's container: PID 1 of a PID namespace, of a user that nobody else has, its Node not readable,
 * `--disable-sigusr1`. What a container has and this has not: a root, a network and cgroups of its own.
 */
export class ContainedRunner extends RunnerHarness {
  readonly user: number;
  readonly #isGuest: boolean;

  constructor(image: string, options: ContainedOptions = {}) {
    // sh, as setpriv itself can still read any file; what it starts cannot.
    const program = ['sh', '-c', 'exec "$@"', 'sh', ...stagedCommand(image)];
    const { user, command } = containedCommand(program, options.processes, options.user);
    super({ ...options, command, owner: user });
    this.user = user;
    this.#isGuest = options.user !== undefined;
  }

  static override async bound(options: ContainedOptions & { image?: string } = {}): Promise<ContainedRunner> {
    const runner = new ContainedRunner(options.image ?? '', options);
    await runner.ready();
    runner.bind();
    await runner.frame('bound');
    return runner;
  }

  /** The runner's pid outside of its namespace; throws when it has ended. */
  get outerPid(): number {
    const [pid] = readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8').trim().split(' ');
    // As a pid, 0 would stand for the test's own process group.
    if (!pid) throw new Error('the runner has ended');
    return Number(pid);
  }

  /** Pids, outside of the namespace, of all that live in it but the runner. */
  others(): number[] {
    const runner = this.outerPid;
    const namespace = readlinkSync(`/proc/${runner}/ns/pid`);
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => pid !== runner && isIn(namespace, pid));
  }

  /** Bytes: the most that the runner has had in memory. */
  peakMemory(): number {
    return peakMemory(this.outerPid);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    try {
      process.kill(this.outerPid, 'SIGKILL');
    } catch {
      // It has ended.
    }
    await this.exited;
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10 });
    if (this.#isGuest) return;
    await eventually(() => processesOf(this.user).length === 0, { what: `no process of user ${this.user} is left` });
  }
}

/** Living processes of a user. */
export function processesOf(user: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8');
        return new RegExp(`^Uid:\\s+${user}\\s`, 'm').test(status) && !/^State:\s+[ZX]/m.test(status);
      } catch {
        return false;
      }
    });
}

function isIn(namespace: string, pid: number): boolean {
  try {
    return (
      readlinkSync(`/proc/${pid}/ns/pid`) === namespace &&
      !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    );
  } catch {
    return false;
  }
}
