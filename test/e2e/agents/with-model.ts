#!/usr/bin/env node
/**
 * Wrapper of the programs `claude` and `codex`, which precedes them on the image's PATH under their names. Starts the
 * stand-in for their models on loopback and runs the program with its arguments, input and output. Prints the last
 * conversation that the model was given to stderr.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';
import { ModelApi } from '../../support/model-api.ts';

const name = basename(process.argv[1] ?? '');
const [first = '', ...rest] = process.argv.slice(2);
await using api = await ModelApi.start();

/** Codex takes another model's address only by its settings. */
function settings(): string[] {
  if (name !== 'codex') return [];
  const provider = { name: 'stand-in', base_url: `${api.url}/v1`, env_key: 'CODEX_API_KEY', wire_api: 'responses' };
  const fields = Object.entries(provider).map(([key, value]) => `model_providers.stand-in.${key}="${value}"`);
  return ['model_provider="stand-in"', 'model="gpt-5"', ...fields].flatMap((setting) => ['-c', setting]);
}

// PATH without its first folder, which holds this program.
const PATH = process.env.PATH?.replace(/^[^:]*:/, '');
const env = { ...process.env, PATH, ANTHROPIC_BASE_URL: api.url };
const agent = spawn(name, [first, ...settings(), ...rest], { env, stdio: 'inherit' });
const [code] = await once(agent, 'exit');
const given = api.requests.at(-1)?.flatMap(({ text }) => text.match(/^(QUESTION|ANSWER).*/gm) ?? []);
console.error(`the model was given: ${JSON.stringify(given)}`);
process.exitCode = code ?? 1;
