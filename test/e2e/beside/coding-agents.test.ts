import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test } from 'vitest';
import { followPage, PAGES } from '../../agents/page.ts';
import { writePrograms } from '../../support/follow.ts';
import { kubectl, makeNamespace, remove } from '../support/cluster.ts';
import { codingAgentImage, loadCodingAgent } from '../support/coding-agents.ts';
import { makeVolume } from '../support/volume.ts';

for (const page of PAGES) {
  const { agent, name, what } = page;
  test(`${what} in a pod changes a repository, hands back a patch and goes on after a suspension, as its page says`, async (t) => {
    const began = performance.now();
    const node = await loadCodingAgent(page);
    await t.annotate(`its image took ${((performance.now() - began) / 1000).toFixed(1)} s`);
    const namespace = await makeNamespace(t);
    const folder = await mkdtemp(join(tmpdir(), 'berth-agents-'));
    t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
    t.onTestFinished(() => remove('sessionclass', name));
    const KUBECONFIG = join(folder, 'kubeconfig');
    await writeFile(KUBECONFIG, await kubectl(['config', 'view', '--raw', '--flatten']));
    await kubectl(['config', 'set-context', '--current', `--namespace=${namespace}`], { env: { KUBECONFIG } });
    const bin = join(folder, 'bin');
    await writePrograms(bin);
    const env = { ...process.env, KUBECONFIG, PATH: `${bin}${delimiter}${process.env.PATH}` };
    const workspace = { type: 'Volume', size: '16Mi', storageClassName: await makeVolume(t, namespace) };
    const nodeSelector = { 'kubernetes.io/hostname': node };
    const own = { image: codingAgentImage(agent), nodeSelector, persistence: { workspace } };
    await followPage(page, { folder, env, own });
  });
}
