/**
 * Set-up file of vitest's workers, run before each test file. Programs that tests start get the environment and the options of Node
 * that the runner was started with, nothing of the worker. A file fails whose tests leave open what keeps a process alive: vitest
 * would end its worker and say nothing.
 */
import assert from 'node:assert/strict';
import { afterAll } from 'vitest';
import { endOfFile } from '../times/clock.ts';
import { leftOpen, openResources } from './open-resources.ts';

for (const name of ['BASE_URL', 'DEV', 'FORCE_TTY', 'MODE', 'NODE_ENV', 'PROD', 'SSR', 'TEST'])
  delete process.env[name];
for (const name of Object.keys(process.env)) if (/^VITEST(_|$)/.test(name)) delete process.env[name];
process.execArgv.length = 0;

const LIMIT_MS = 30_000;
const before = openResources();

// vitest wants its first argument taken apart, also where nothing of it is used.
// biome-ignore lint/correctness/noEmptyPattern: see above
afterAll(async ({}, file) => {
  const open = await leftOpen(before, LIMIT_MS);
  file.meta.times = endOfFile();
  assert.deepEqual(open, [], 'tests close what they open');
}, 2 * LIMIT_MS);
