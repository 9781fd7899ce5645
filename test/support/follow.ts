/** Runs what a page of the documentation says, as a reader would type it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { CHECKOUT, type Command, pattern } from './pages.ts';
import { tools } from './tools.ts';

/** Lines in which a command says what it waits for. Only slow machines print them, so no page shows them. */
const SLOW = /^waiting(?::| for turn) .*\n/gm;

/** Place where a page is followed. */
interface Place {
  page: string;
  folder: string;
  env: NodeJS.ProcessEnv;
  /** Shell commands that are run before those of the page. */
  before?: string;
  limitMs: number;
}

/** Writes the programs that pages call by their names into `bin`. */
export async function writePrograms(bin: string): Promise<void> {
  const { kubectl } = await tools();
  const programs = {
    node: `exec ${process.execPath} "$@"`,
    berth: `exec ${join(CHECKOUT, 'bin/berth')} "$@"`,
    kubectl: `export KUBECONFIG="\${KUBECONFIG:-$BERTH_HOME/kubeconfig}"; exec ${kubectl} "$@"`,
  };
  mkdirSync(bin, { recursive: true });
  for (const [name, script] of Object.entries(programs)) {
    const file = join(bin, name);
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
  }
}

/** Runs the commands of a page in one shell; rejects with what is not as the page says. */
export async function follow(commands: readonly Command[], place: Place): Promise<void> {
  const { page, folder, env, before = ':', limitMs } = place;
  const said = (n: number | string) => join(folder, `.said-${n}`);
  const script = [
    `{\n${before}\n} >${said('before')} 2>&1 || exit 1`,
    ...commands.map(({ typed }, n) => `{\n${typed}\n} >${said(n)} 2>&1 </dev/null || exit 1\ntouch ${said(n)}.done`),
  ];
  const outcome = await bash(script.join('\n'), { cwd: folder, env, limitMs }).then(
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
    const isAsShown = !shown || pattern(shown).test((printed ?? '').replace(SLOW, ''));
    return isAsShown ? [] : [`${at}\nprinted: ${printed}\nthe page: ${shown}`];
  });
  if (wrong.length === 0 && outcome) wrong.push(`${page}: before: ${content(said('before'))} ${outcome}`);
  assert.equal(wrong.join('\n'), '');
}

/** stdout of a script; rejects with all that it printed when it fails. */
export async function bash(
  script: string,
  { cwd, env, limitMs }: { cwd: string; env: NodeJS.ProcessEnv; limitMs: number },
): Promise<string> {
  const child = spawn('bash', ['-c', script], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: limitMs });
  const code = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  const [ended, stdout, stderr] = await Promise.all([code, text(child.stdout), text(child.stderr)]);
  if (ended !== 0) throw new Error(`the shell ended with ${ended}: ${stdout}${stderr}`);
  return stdout;
}
