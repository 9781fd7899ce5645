/**
 * Writes the code cache of the staged command line, for `package/build.ts`: `node warm.cjs LIB`. Runs the commands that
 * people run most against the cluster of KUBECONFIG first, because a cache has the functions that have run.
 */
const { writeFileSync } = require('node:fs');
const { join } = require('node:path');
const v8 = require('node:v8');

const [lib] = process.argv.slice(2);
// V8 takes a cache only with the flags that it was made with, and a command changes one while it runs.
v8.setFlagsFromString = () => {};

const COMMANDS = [
  ['version'],
  ['create', 'warm', '--result', 'text', '--input-as', 'text', '--', 'cat'],
  ['turn', 'warm', '--text', 'hello'],
  ['run', '--rm', '--text', 'hello', '--result', 'text', '--input-as', 'text', '--', 'cat'],
  ['list'],
  ['get', 'warm'],
  ['logs', 'warm'],
  ['why', 'warm'],
  ['delete', 'warm'],
];

async function warm() {
  const { load } = require(join(lib, 'start.cjs'));
  const { script, main } = load();
  for (const command of COMMANDS) {
    const code = await main(command);
    if (code !== 0) throw new Error(`berth ${command.join(' ')} ended with ${code}`);
  }
  writeFileSync(join(lib, 'cli.cache'), script.createCachedData());
  if (load().script.cachedDataRejected !== false) throw new Error('V8 refuses the code cache that it has just made');
}

warm();
