/** The interpreters of scenarios on the runtimes that the clients promise to hold on, as their locks in test/client-runtimes name them. */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { arch, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { transform } from 'esbuild';
import { type Client, pythonClient, TYPESCRIPT } from './clients.ts';

const run = promisify(execFile);
const CHECKOUT = join(import.meta.dirname, '../..');
const INTERPRETER = join(import.meta.dirname, 'typescript/main.ts');
const SOURCES = '../../../clients/typescript/src/index.ts';
const BUILD_MS = 300_000;

/** Programs by Node's name of the architecture, below node_modules. */
const PROGRAMS: Readonly<Record<string, Readonly<Record<'node20' | 'node22' | 'deno' | 'bun', string>>>> = {
  x64: {
    node20: 'node20-x64/bin/node',
    node22: 'node22-x64/bin/node',
    deno: '@deno/linux-x64-glibc/deno',
    bun: '@oven/bun-linux-x64/bin/bun',
  },
  arm64: {
    node20: 'node20-arm64/bin/node',
    node22: 'node22-arm64/bin/node',
    deno: '@deno/linux-arm64-glibc/deno',
    bun: '@oven/bun-linux-aarch64/bin/bun',
  },
};
/** Nothing is written into the home of a run, and nothing fetched. */
const ENV: Readonly<Record<string, string>> = {
  DENO_DIR: join(tmpdir(), 'berth-test-deno'),
  DENO_NO_UPDATE_CHECK: '1',
  BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0',
  DO_NOT_TRACK: '1',
};

/**
 * Resolves with the TypeScript client of the built package on each runtime, and with the Python client beside the oldest packages that its wheel allows.
 * Installs them where they are not there. Rejects with what npm or pip say.
 */
export async function runtimeClients(): Promise<Client[]> {
  const programs = PROGRAMS[arch()];
  if (!programs) throw new Error(`there are no runtimes for ${arch()}`);
  const install = join(CHECKOUT, 'test/generated-clients/install');
  const tools = (await run(install, [join(CHECKOUT, 'test/client-runtimes')], { timeout: BUILD_MS })).stdout.trim();
  const interpreter = await builtInterpreter();
  const clients = Object.entries(programs).map(([name, path]): Client => {
    const program = join(tools, 'node_modules', path);
    const options = name === 'deno' ? ['run', '--quiet', '--allow-all', '--no-config', '--no-lock'] : [];
    return {
      name,
      command: [program, ...options, interpreter],
      env: (folder) => ({ ...TYPESCRIPT.env(folder), ...ENV }),
    };
  });
  const python = join(tools, 'venv/bin/python');
  return [
    ...clients,
    pythonClient('python', python, 'oldest-python'),
    pythonClient('python-sync', python, 'oldest-python-sync'),
  ];
}

/** Resolves with the path of the interpreter as JavaScript, which uses the client as its package has it. */
async function builtInterpreter(): Promise<string> {
  await run(process.execPath, [join(CHECKOUT, 'package/typescript-client.ts')], { timeout: BUILD_MS });
  const dist = pathToFileURL(join(CHECKOUT, 'build/typescript-client/dist/index.js')).href;
  const source = (await readFile(INTERPRETER, 'utf8')).replace(SOURCES, dist);
  const { code } = await transform(source, { loader: 'ts', format: 'esm', target: 'es2022' });
  if (!code.includes(dist)) throw new Error(`${INTERPRETER} does not import ${SOURCES}`);
  const path = join(CHECKOUT, 'build/client-runtimes/interpreter.mjs');
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, code);
  return path;
}
