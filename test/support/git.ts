import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Git in one folder. */
export class Git {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Resolves to the trimmed output. Rejects with what git says where it fails, also where there is no git. */
  async run(...args: string[]): Promise<string> {
    // A container's checkout often belongs to another user, whose repository git refuses.
    const all = ['-c', 'safe.directory=*', ...args];
    const { stdout } = await promisify(execFile)('git', all, { cwd: this.#folder, maxBuffer: 2 ** 26 });
    return stdout.trim();
  }

  /** Resolves to the commit's hash, or to undefined where there is no such commit. */
  commit(revision: string): Promise<string | undefined> {
    return this.run('rev-parse', '--verify', '--quiet', `${revision}^{commit}`).catch(() => undefined);
  }

  /** Resolves to the commit at which HEAD has left origin's main branch; to undefined where HEAD is on it, or there is no origin. */
  async branchPoint(): Promise<string | undefined> {
    const main = (await this.commit('origin/HEAD')) ?? (await this.commit('origin/main'));
    // Unrelated histories have no merge base.
    const base = main && (await this.run('merge-base', 'HEAD', main).catch(() => undefined));
    return base === (await this.commit('HEAD')) ? undefined : base;
  }
}
