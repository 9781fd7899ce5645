/** Images with Claude Code and with Codex CLI, as the Dockerfiles in docs/agents/ make them, and above that a stand-in for the model. */
import assert from 'node:assert/strict';
import { chmod, cp, mkdir, readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type ArchiveResult, writeArchive } from '../../../images/archive.ts';
import { image } from '../../../images/build.ts';
import { installed } from '../../agents/install.ts';
import { checkout } from './cluster.ts';
import { loadImage, nodeNames } from './node.ts';

export type CodingAgent = 'claude' | 'codex';

const PAGES = { claude: 'claude-code.md', codex: 'codex.md' };
const out = join(checkout, 'build/images');

export const codingAgentImage = (agent: CodingAgent) => `example/${agent}:e2e`;

/**
 * Builds the image of `agent` above the layers that `prepare.ts` left and brings it onto one node, each of which would take ten
 * seconds more; resolves to the node's name. Installs the program first where the user's cache has none; rejects when it cannot
 * be had.
 */
export async function loadCodingAgent(agent: CodingAgent): Promise<string> {
  const archive = await build(agent);
  const node = (await nodeNames()).at(-1)!;
  await loadImage(archive, node);
  await rm(archive.file);
  return node;
}

async function build(agent: CodingAgent): Promise<ArchiveResult> {
  const folder = join(out, `coding-agent-${agent}`);
  await rm(folder, { recursive: true, force: true });
  // The stand-in and what it imports, as they lie in the checkout.
  const wrapper = 'e2e/agents/with-model.ts';
  const standIn = join(folder, 'opt/stand-in');
  for (const part of [wrapper, 'support/model-api.ts']) await cp(join(checkout, 'test', part), join(standIn, part));
  await chmod(join(standIn, wrapper), 0o755);
  await mkdir(join(standIn, 'bin'));
  await symlink(`../${wrapper}`, join(standIn, 'bin', agent));
  const { modules, scope, path } = await dockerfile(agent);
  const target = join(folder, modules);
  await cp(join(installed(), scope), join(target, scope), { recursive: true, verbatimSymlinks: true });
  await cp(join(installed(), '.bin', agent), join(target, '.bin', agent), { verbatimSymlinks: true });
  const { layers, config } = image('runner', 'e2e');
  const Env = (config.Env ?? []).map((variable) => variable.replace(/^PATH=/, `PATH=/opt/stand-in/bin:${path}:`));
  const own = { name: codingAgentImage(agent), layers: [...layers, { folder }], config: { ...config, Env } };
  return writeArchive(own, `${folder}.tar`);
}

/**
 * Lines that the Dockerfile of the agent's page adds to the runner's image. Rejects when its versions differ from those
 * installed here.
 */
async function dockerfile(agent: CodingAgent): Promise<{ modules: string; scope: string; path: string }> {
  const page = await readFile(join(checkout, 'docs/agents', PAGES[agent]), 'utf8');
  const lines = new RegExp(
    [
      '^RUN npm install --prefix (?<prefix>\\S+) (?<scope>@[^/]+)/(?<name>\\S+)@(?<version>\\S+)$',
      '^FROM berth/runner$',
      '^COPY --from=\\S+ \\k<prefix> \\k<prefix>$',
      '^ENV PATH=(?<path>\\S+):\\$PATH$',
    ].join('\n'),
    'm',
  );
  const { prefix, scope, name, version, path } = lines.exec(page)?.groups ?? {};
  assert.ok(prefix && scope && path, `docs/agents/${PAGES[agent]} has no Dockerfile that is understood here`);
  const manifest = JSON.parse(await readFile(join(installed(), scope, name!, 'package.json'), 'utf8'));
  assert.equal(manifest.version, version, `the version of docs/agents/${PAGES[agent]} is installed`);
  return { modules: join(prefix, 'node_modules'), scope, path };
}
