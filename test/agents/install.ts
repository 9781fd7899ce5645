import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

/** The versions that examples/ and docs/agents/ speak of. */
const VERSIONS = { '@anthropic-ai/claude-code': '2.1.197', '@openai/codex': '0.169.0' };
/** Installed in a folder of its own: the end-to-end tests do not need it. */
const GEMINI = { '@google/gemini-cli': '0.61.0' };

/**
 * A search path with the programs `claude`, `codex` and `gemini`: 740 MB, too much for the checkout. Installed once per version into
 * BERTH_AGENTS, by default the user's cache. Throws with npm's own words when they cannot be had.
 */
export function codingAgents(): string {
  return [installed(), install(GEMINI, ['gemini'])].map((modules) => join(modules, '.bin')).join(delimiter);
}

/** The folder into which npm has laid Claude Code and Codex CLI. Throws as `codingAgents` does. */
export function installed(): string {
  return install(VERSIONS, ['claude', 'codex']);
}

function install(packages: Record<string, string>, programs: string[]): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const versions = Object.values(packages).join('-');
  const folder = join(process.env.BERTH_AGENTS ?? join(cache, 'berth', 'agents'), versions);
  const modules = join(folder, 'node_modules');
  if (!programs.every((name) => existsSync(join(modules, '.bin', name)))) {
    mkdirSync(folder, { recursive: true });
    const wanted = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
    const flags = ['--no-audit', '--no-fund'];
    execFileSync('npm', ['install', '--prefix', folder, ...flags, ...wanted], {
      stdio: ['ignore', 'inherit', 'pipe'],
    });
  }
  return modules;
}
