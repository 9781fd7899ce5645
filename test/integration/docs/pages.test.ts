import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { freePort } from '../../../local/program.ts';
import { CHECKOUT, type Command, commands, pages, pattern, shownFiles } from '../../support/pages.ts';
import { tools } from '../../support/tools.ts';
import { BEFORE } from './before.ts';

const LIMIT_MS = 180_000;

/** A folder with the examples, as a clone has it, and an embedded cluster of its own. */
class Reader {
  readonly #root = mkdtempSync(join(tmpdir(), 'berth-docs-'));
  readonly #env: NodeJS.ProcessEnv;

  constructor() {
    const bin = join(this.#root, 'bin');
    const home = join(this.#root, 'home');
    const { KUBECONFIG: _, ...own } = process.env;
    this.#env = { ...own, PATH: `${bin}:${own.PATH}`, HOME: home, XDG_DATA_HOME: '', BERTH_HOME: join(home, 'berth') };
    for (const folder of [bin, home]) mkdirSync(folder);
  }

  async prepare(): Promise<void> {
    const { kubectl } = await tools();
    const berth = join(CHECKOUT, 'bin/berth');
    const programs = {
      node: `exec ${process.execPath} "$@"`,
      berth: `exec ${berth} "$@"`,
      kubectl: `export KUBECONFIG="\${KUBECONFIG:-$BERTH_HOME/kubeconfig}"; exec ${kubectl} "$@"`,
    };
    for (const [name, script] of Object.entries(programs)) {
      const file = join(this.#root, 'bin', name);
      writeFileSync(file, `#!/bin/sh\n${script}\n`);
      chmodSync(file, 0o755);
    }
    await this.#bash(this.#root, 'berth local up --detach');
  }

  /** Runs the commands of a page in one shell; rejects with what is not as the page says. */
  async follow(page: string, commands: readonly Command[]): Promise<void> {
    const folder = mkdtempSync(join(this.#root, 'page-'));
    cpSync(join(CHECKOUT, 'examples'), join(folder, 'examples'), { recursive: true });
    for (const [name, content] of [...shownFiles('README.md'), ...shownFiles(page)])
      writeFileSync(join(folder, name), content);
    // The port that pages name may be another program's.
    const port = String(await freePort());
    const said = (n: number | string) => join(folder, `.said-${n}`);
    const script = [
      `{\n${BEFORE[page] ?? ':'}\n} >${said('before')} 2>&1 || exit 1`,
      ...commands.map(({ typed }, n) => `{\n${typed}\n} >${said(n)} 2>&1 </dev/null || exit 1\ntouch ${said(n)}.done`),
    ];
    const outcome = await this.#bash(folder, script.join('\n').replaceAll('8080', port)).then(
      () => undefined,
      (error: Error) => error.message,
    );
    const content = (file: string) => {
      try {
        return readFileSync(file, 'utf8');
      } catch {
        return undefined;
      }
    };
    const wrong = commands.flatMap(({ line, typed, shown }, n) => {
      const printed = content(said(n));
      const at = `${page}:${line}: $ ${typed}`;
      if (content(`${said(n)}.done`) === undefined) return printed === undefined ? [] : [`${at}\nfailed: ${printed}`];
      return !shown || pattern(shown).test(printed ?? '') ? [] : [`${at}\nprinted: ${printed}\nthe page: ${shown}`];
    });
    if (wrong.length === 0 && outcome) wrong.push(`${page}: before: ${content(said('before'))} ${outcome}`);
    assert.equal(wrong.join('\n'), '');
  }

  /** Deletes what a page has left. */
  async forget(): Promise<void> {
    const kinds = 'sessions,turns,environments,approvals,configmaps,secrets,events,roles,rolebindings';
    const classes = 'kubectl get sessionclasses -o name | grep -v -e /default -e /python | xargs -r kubectl delete';
    const accounts = 'kubectl delete serviceaccounts --field-selector metadata.name!=default';
    const pools = 'kubectl delete sessionpools --all --all-namespaces';
    await this.#bash(this.#root, `kubectl delete ${kinds} --all --wait=false && ${accounts} && ${classes} && ${pools}`);
  }

  async remove(): Promise<void> {
    await this.#bash(this.#root, 'berth local down');
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 10 });
  }

  async #bash(cwd: string, script: string): Promise<void> {
    const child = spawn('bash', ['-c', script], {
      cwd,
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: LIMIT_MS,
    });
    const code = new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    const [ended, stdout, stderr] = await Promise.all([code, text(child.stdout), text(child.stderr)]);
    if (ended !== 0) throw new Error(`the shell ended with ${ended}: ${stdout}${stderr}`);
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
