import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NODE_FLAGS } from '../../core/program/node-flags.ts';
import { bundle } from '../../images/bundle.ts';
import { eventually } from './eventually.ts';
import { peakMemory } from './processes.ts';
import { skipWithout } from './requires.ts';
import { type HarnessOptions, noKeeper, RunnerHarness } from './runner-harness.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..');
/** Limit of the threads and processes of the runner's user, so that a fork bomb cannot take the whole machine. */
const MAX_PROCESSES = 64;

const canUnshare = () => spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0;

/** Reason why no runner can be started as in a container; false where one can be started. */
export const noContainer: string | false =
  noKeeper ||
  skipWithout('root', process.getuid?.() === 0, 'needs root, for another user and a PID namespace') ||
  skipWithout('pid-namespaces', canUnshare(), 'PID namespaces cannot be made here');

/**
 * Stages programs as in an image: the same bundle, owned by root, and Node can be run but not read. The caller removes the
 * folder at the end.
 */
export async function stageImage(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-image-'));
  chmodSync(folder, 0o755);
  await bundle(CHECKOUT, 'runner/main.ts', join(folder, 'runner.cjs'));
  copyFileSync(process.execPath, join(folder, 'node'));
  chmodSync(join(folder, 'node'), 0o711);
  mkdirSync(join(folder, 'bin'));
  for (const name of ['keeper', 'signals.node', 'bin/berth-agent']) {
    copyFileSync(join(CHECKOUT, 'build', name), join(folder, name));
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

/** Returns the command of the runner in such a folder, as an image starts it. */
export function stagedCommand(image: string): string[] {
  return [join(image, 'node'), ...NODE_FLAGS, join(image, 'runner.cjs')];
}

let users = 0;

/** Returns a user id that no other process has. */
function newUser(): number {
  users += 1;
  return 100_000 + (process.pid % 30_000) * 64 + users;
}

/**
 * Returns a command that runs as PID 1 of a PID namespace, as a user, by default an unused one, with a limit of
 * processes and threads.
 */
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
  /** Limit of the processes and threads of its user. */
  processes?: number;
  /** User of another runner, which outlives this one. */
  user?: number;
}

/**
 * A runner as in a session's container: PID 1 of a PID namespace, of an unused user, its Node not readable,
 * `--disable-sigusr1`. It differs from a container in its root, network and cgroups, which are the machine's.
 */
export class ContainedRunner extends RunnerHarness {
  readonly user: number;
  readonly #isGuest: boolean;

  constructor(image: string, options: ContainedOptions = {}) {
    // sh runs between them, because setpriv itself can still read any file; its child cannot.
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
    // Pid 0 would stand for the test's own process group.
    if (!pid) throw new Error('the runner has ended');
    return Number(pid);
  }

  /** Returns the pids, outside of the namespace, of all processes in it but the runner. */
  others(): number[] {
    const runner = this.outerPid;
    const namespace = readlinkSync(`/proc/${runner}/ns/pid`);
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => pid !== runner && isIn(namespace, pid));
  }

  /** Highest memory use of the runner, bytes. */
  peakMemory(): number {
    return peakMemory(this.outerPid);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    try {
      process.kill(this.outerPid, 'SIGKILL');
    } catch {
      // The process has ended.
    }
    await this.exited;
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10 });
    if (this.#isGuest) return;
    await eventually(() => processesOf(this.user).length === 0, { what: `no process of user ${this.user} is left` });
  }
}

/** Returns the living processes of a user. */
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
