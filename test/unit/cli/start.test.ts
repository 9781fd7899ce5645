import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, normalize } from 'node:path';
import { describe, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..', '..');
/** Specifiers of the static imports and re-exports of values. */
const IMPORT = /^(?:import|export) (?!type\b)(?:[^'"]*? from )?['"]([^'"]+)['"]/gms;

/** Packages that are loaded with these modules, in a process that imports nothing else. */
function packagesOf(...modules: string[]): string[] {
  const seen = new Set(modules);
  const packages = new Set<string>();
  for (const file of seen) {
    for (const [, specifier = ''] of readFileSync(join(ROOT, file), 'utf8').matchAll(IMPORT)) {
      if (specifier.startsWith('.')) seen.add(normalize(join(dirname(file), specifier)));
      else if (!specifier.startsWith('node:') && !builtinModules.includes(specifier)) packages.add(specifier);
    }
  }
  return [...packages].sort();
}

/** Modules of a command that talks to a cluster: what every start loads, and its own. */
const command = (name: string) => packagesOf('cli/program.ts', `cli/commands/${name}.ts`, 'core/kube/kubeconfig.ts');
const CLIENT = [
  '@kubernetes/client-node/dist/config_types.js',
  '@kubernetes/client-node/dist/exec_auth.js',
  'commander',
  'undici/lib/dispatcher/pool.js',
];

describe('the start of the command line', () => {
  test('loads commander alone for --help and --version', () => {
    assert.deepEqual(packagesOf('cli/main.ts', 'cli/program.ts'), ['commander']);
  });
  test('loads neither schemas nor YAML for commands that read or watch', () => {
    for (const name of ['list', 'get', 'logs', 'watch', 'wait', 'why', 'version'])
      assert.deepEqual(command(name), CLIENT, name);
  });
  test('loads no schemas for commands that create', () => {
    for (const name of ['run', 'turn', 'create', 'map'])
      assert.deepEqual(command(name), [...CLIENT, 'ignore'].sort(), name);
  });
});
