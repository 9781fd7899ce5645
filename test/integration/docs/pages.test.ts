import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { freePort } from '../../../local/ports.ts';
import { bash, follow, writePrograms } from '../../support/follow.ts';
import { CHECKOUT, type Command, commands, pages, shownFiles } from '../../support/pages.ts';
import { BEFORE } from './before.ts';

const LIMIT_MS = 180_000;

/** A folder with the examples, as a clone has it, and an embedded cluster of its own. */
class Reader {
  readonly #root = mkdtempSync(join(tmpdir(), 'berth-docs-'));
  readonly #home: string;
  readonly #env: NodeJS.ProcessEnv;

  constructor() {
    const bin = join(this.#root, 'bin');
    const home = join(this.#root, 'home');
    const { KUBECONFIG: _, ...own } = process.env;
    this.#home = join(home, 'berth');
    this.#env = { ...own, PATH: `${bin}:${own.PATH}`, HOME: home, XDG_DATA_HOME: '', BERTH_HOME: this.#home };
    mkdirSync(home);
  }

  async prepare(): Promise<void> {
    await writePrograms(join(this.#root, 'bin'));
    await this.#bash('berth local up --detach');
  }

  /** Runs the commands of a page in a folder of its own; rejects with what is not as the page says. */
  async follow(page: string, commands: readonly Command[]): Promise<void> {
    const folder = mkdtempSync(join(this.#root, 'page-'));
    cpSync(join(CHECKOUT, 'examples'), join(folder, 'examples'), { recursive: true });
    for (const [name, content] of [...shownFiles('README.md'), ...shownFiles(page)])
      writeFileSync(join(folder, name), content);
    // Who reads another page has created a session before.
    if (page !== 'README.md') writeFileSync(join(this.#home, 'told-of-real-clusters'), '');
    // The port that pages name may be another program's.
    const port = String(await freePort());
    const typed = commands.map((command) => ({ ...command, typed: command.typed.replaceAll('8080', port) }));
    const before = BEFORE[page]?.replaceAll('8080', port);
    await follow(typed, { page, folder, env: this.#env, ...(before && { before }), limitMs: LIMIT_MS });
  }

  /** Deletes what a page has left. */
  async forget(): Promise<void> {
    const kinds = 'sessions,turns,environments,approvals,configmaps,secrets,events,roles,rolebindings';
    const classes = 'kubectl get sessionclasses -o name | grep -v -e /default -e /python | xargs -r kubectl delete';
    const accounts = 'kubectl delete serviceaccounts --field-selector metadata.name!=default';
    const pools = 'kubectl delete sessionpools --all --all-namespaces';
    await this.#bash(`kubectl delete ${kinds} --all --wait=false && ${accounts} && ${classes} && ${pools}`);
  }

  async remove(): Promise<void> {
    await this.#bash('berth local down');
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 10 });
  }

  async #bash(script: string): Promise<void> {
    await bash(script, { cwd: this.#root, env: this.#env, limitMs: LIMIT_MS });
  }
}

describe('the documentation, followed on the embedded cluster', () => {
  const reader = new Reader();
  beforeAll(() => reader.prepare());
  afterAll(() => reader.remove());

  for (const page of pages().filter((page) => page === 'README.md' || page.startsWith('docs/'))) {
    const typed = commands(page).filter(({ isIgnored }) => !isIgnored);
    if (typed.length === 0) continue;
    test(`${page}: each of its ${typed.length} commands does what the page shows`, async (t) => {
      t.onTestFinished(() => reader.forget());
      await reader.follow(page, typed);
    });
  }
});
