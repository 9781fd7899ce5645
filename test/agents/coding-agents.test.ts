import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { bash, writePrograms } from '../support/follow.ts';
import { codingAgents } from './install.ts';
import { followPage, PAGES } from './page.ts';

const LIMIT_MS = 180_000;

describe('the pages of coding agents, followed on the embedded cluster', () => {
  const root = mkdtempSync(join(tmpdir(), 'berth-agents-'));
  const home = join(root, 'home');
  const bin = join(root, 'bin');
  const standIn = join(root, 'stand-in');
  const { KUBECONFIG: _, ...own } = process.env;
  const env: NodeJS.ProcessEnv = { ...own, HOME: home, XDG_DATA_HOME: '', BERTH_HOME: join(home, 'berth') };
  const run = (script: string) => bash(script, { cwd: root, env, limitMs: LIMIT_MS });

  beforeAll(async () => {
    env.PATH = [bin, standIn, codingAgents(), own.PATH].join(delimiter);
    for (const folder of [home, standIn]) mkdirSync(folder);
    for (const { agent } of PAGES) symlinkSync(join(import.meta.dirname, 'with-model.ts'), join(standIn, agent));
    await writePrograms(bin);
    await run('berth local up --detach');
  });
  afterAll(async () => {
    await run('berth local down');
    rmSync(root, { recursive: true, force: true, maxRetries: 10 });
  });

  for (const page of PAGES) {
    const { name, what } = page;
    test(`${what} changes a repository, hands back a patch and goes on after a suspension, as its page says`, async () => {
      const folder = join(root, name);
      mkdirSync(folder);
      const KUBECONFIG = join(folder, 'kubeconfig');
      await run(`cp "$BERTH_HOME/kubeconfig" ${KUBECONFIG}
kubectl create namespace ${name}
KUBECONFIG=${KUBECONFIG} kubectl config set-context --current --namespace=${name}`);
      await followPage(page, { folder, env: { ...env, KUBECONFIG } });
    });
  }
});
