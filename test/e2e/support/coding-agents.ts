/** Images as the Dockerfiles in docs/agents/ make them, and above that a stand-in for the model. */
import assert from 'node:assert/strict';
import { cp, mkdir, readFile, readlink, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type ArchiveResult, writeArchive } from '../../../images/archive.ts';
import { type CodingAgent, installed } from '../../agents/install.ts';
import type { Page } from '../../agents/page.ts';
import { checkout } from './cluster.ts';
import { loadImage, nodeNames } from './node.ts';

const out = join(checkout, 'build/images');

export const codingAgentImage = (agent: CodingAgent) => `example/${agent}:e2e`;

/**
 * Builds the image of a page above the layers that `prepare.ts` left and brings it onto one node, each of which would take ten
 * seconds more; resolves to the node's name. Installs the program first where the user's cache has none; rejects when it cannot
 * be had.
 */
export async function loadCodingAgent(page: Page): Promise<string> {
  await checkDockerfile(page);
  const archive = await build(page.agent);
  const node = (await nodeNames()).at(-1)!;
  await loadImage(archive, node);
  await rm(archive.file);
  return node;
}

/** Node, then bash and git of Debian, then the agent as `npm install --global` lays it. */
async function build(agent: CodingAgent): Promise<ArchiveResult> {
  const folder = join(out, `coding-agent-${agent}`);
  await rm(folder, { recursive: true, force: true });
  const modules = installed(agent);
  // Claude Code's program is there twice, as a hard link, which a layer would hold twice.
  const filter = (source: string) => !/[/](claude-code-linux-\w+|[.]bin)$/.test(source);
  await cp(modules, join(folder, 'usr/local/lib/node_modules'), { recursive: true, verbatimSymlinks: true, filter });
  await mkdir(join(folder, 'usr/local/bin'));
  const program = (await readlink(join(modules, '.bin', agent))).replace(/^\.\./, '../lib/node_modules');
  await symlink(program, join(folder, 'usr/local/bin', agent));
  // The stand-in and what it imports, as they lie in the checkout.
  const standIn = join(folder, 'opt/stand-in');
  for (const part of ['agents/with-model.ts', 'support/gemini.ts', 'support/model-api.ts'])
    await cp(join(checkout, 'test', part), join(standIn, part));
  await mkdir(join(standIn, 'bin'));
  await symlink('../agents/with-model.ts', join(standIn, 'bin', agent));
  const Env = ['PATH=/opt/stand-in/bin:/usr/local/bin:/usr/bin:/bin'];
  const layers = [join(out, 'base'), join(out, 'any-debian'), folder].map((layer) => ({ folder: layer }));
  const image = { name: codingAgentImage(agent), layers, config: { Entrypoint: ['/usr/local/bin/node'], Env } };
  return writeArchive(image, `${folder}.tar`);
}

/** Rejects when the Dockerfile of a page is not what `build` does, or its version is not the one installed here. */
async function checkDockerfile({ agent, name }: Page): Promise<void> {
  const page = await readFile(join(checkout, 'docs/agents', `${name}.md`), 'utf8');
  const [, dockerfile = ''] = /^```dockerfile\n(.*?)^```$/ms.exec(page) ?? [];
  const lines = [
    '^FROM node:24-slim',
    'RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git && .*',
    'RUN useradd --uid 65532 agent',
    'RUN npm install --global (?<name>@\\S+)@(?<version>\\S+)\n$',
  ];
  const found = new RegExp(lines.join('\n')).exec(dockerfile)?.groups;
  assert.ok(found, `docs/agents/${name}.md has another Dockerfile than the one that is built here:\n${dockerfile}`);
  const manifest = join(installed(agent), found.name!, 'package.json');
  const { version } = JSON.parse(await readFile(manifest, 'utf8'));
  assert.equal(version, found.version, `docs/agents/${name}.md names the version that is installed`);
}
