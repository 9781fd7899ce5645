#!/usr/bin/env node
/**
 * Wrapper of the programs `claude`, `codex` and `gemini`, which precedes them on PATH under their names. Starts the stand-in
 * for their models on loopback and runs the program with its arguments, input and output. Prints the last conversation
 * that the model was given to stderr.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { basename, delimiter, dirname } from 'node:path';
import { useApiKey } from '../support/gemini.ts';
import { ModelApi } from '../support/model-api.ts';

const self = process.argv[1] ?? '';
const name = basename(self);
const [first = '', ...rest] = process.argv.slice(2);
await using api = await ModelApi.start();

/** Codex takes another model's address only by its settings. */
function settings(): string[] {
  if (name !== 'codex') return [];
  const provider = { name: 'stand-in', base_url: `${api.url}/v1`, env_key: 'CODEX_API_KEY', wire_api: 'responses' };
  const fields = Object.entries(provider).map(([key, value]) => `model_providers.stand-in.${key}="${value}"`);
  return ['model_provider="stand-in"', 'model="gpt-5"', ...fields].flatMap((setting) => ['-c', setting]);
}

if (name === 'gemini') useApiKey(process.env.GEMINI_CLI_HOME ?? '');
const folders = process.env.PATH?.split(delimiter) ?? [];
const PATH = folders.filter((folder) => folder !== dirname(self)).join(delimiter);
const env = { ...process.env, PATH, ANTHROPIC_BASE_URL: api.url, GOOGLE_GEMINI_BASE_URL: api.url };
const agent = spawn(name, [first, ...settings(), ...rest], { env, stdio: 'inherit' });
const [code] = await once(agent, 'exit');
console.error(`the model was given: ${JSON.stringify(api.dialogue())}`);
process.exitCode = code ?? 1;
