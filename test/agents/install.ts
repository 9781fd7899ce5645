import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

/** npm packages by program, in the versions that examples/ and docs/agents/ speak of. */
const PACKAGES = {
  claude: '@anthropic-ai/claude-code@2.1.197',
  codex: '@openai/codex@0.169.0',
  gemini: '@google/gemini-cli@0.61.0',
};

export type CodingAgent = keyof typeof PACKAGES;

/** A search path with the programs `claude`, `codex` and `gemini`. Throws as `installed` does. */
export function codingAgents(): string {
  const agents = Object.keys(PACKAGES) as CodingAgent[];
  return agents.map((agent) => join(installed(agent), '.bin')).join(delimiter);
}

/**
 * The folder into which npm has laid an agent; all three have 740 MB, too much for the checkout. Installed once per version
 * into BERTH_AGENTS, by default the user's cache. Throws with npm's own words when it cannot be had.
 */
export function installed(agent: CodingAgent): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const version = PACKAGES[agent].split('@').at(-1);
  const folder = join(process.env.BERTH_AGENTS ?? join(cache, 'berth', 'agents'), `${agent}-${version}`);
  const modules = join(folder, 'node_modules');
  if (!existsSync(join(modules, '.bin', agent))) {
    mkdirSync(folder, { recursive: true });
    const flags = ['--no-audit', '--no-fund'];
    execFileSync('npm', ['install', '--prefix', folder, ...flags, PACKAGES[agent]], {
      stdio: ['ignore', 'inherit', 'pipe'],
    });
  }
  return modules;
}
