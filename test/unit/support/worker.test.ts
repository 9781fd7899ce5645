import assert from 'node:assert/strict';
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { test } from 'vitest';
import { leftOpen, openResources } from '../../support/open-resources.ts';

/** Names of the environment that vitest itself was started with. */
function runnersNames(): Set<string> {
  const environ = readFileSync(`/proc/${process.ppid}/environ`, 'utf8');
  return new Set(environ.split('\0').map((entry) => entry.slice(0, entry.indexOf('='))));
}

test('a program that a test starts sees nothing of the worker in its environment', () => {
  const script = 'console.log(JSON.stringify(Object.keys(process.env)))';
  const names: string[] = JSON.parse(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' }));
  const known = runnersNames();
  assert.ok(names.includes('PATH'));
  assert.deepEqual(
    names.filter((name) => !known.has(name) || name === 'NODE_ENV' || name.startsWith('VITEST')),
    [],
  );
});

test('a Node that a test forks has no options of the worker', async () => {
  const child = fork('data:', { execArgv: [...process.execArgv, '-e', 'process.send(process.execArgv)'] });
  const [options] = await once(child, 'message');
  await once(child, 'exit');
  assert.deepEqual(options, ['-e', 'process.send(process.execArgv)']);
});

test('a server that is left open is named, one that is closed in time is not', async () => {
  const before = openResources();
  const server = createServer().listen(0);
  await once(server, 'listening');
  assert.deepEqual(await leftOpen(before, 0), ['TCPServerWrap']);
  const left = leftOpen(before, 60_000);
  server.close();
  assert.deepEqual(await left, []);
});
