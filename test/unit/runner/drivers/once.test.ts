import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, describe, test } from 'vitest';
import type { AgentSpec } from '../../../../core/frames/messages.ts';
import { hiddenBy } from '../../../../core/text/hidden.ts';
import type { DriverOptions } from '../../../../runner/drivers/driver.ts';
import { argumentsOf, planOnce, runOnce } from '../../../../runner/drivers/once.ts';
import type { SessionProcesses } from '../../../../runner/drivers/session-processes.ts';
import { directoriesUnder } from '../../../../runner/system/directories.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-once-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const directories = directoriesUnder(root);
mkdirSync(directories.work);

const AGENT: AgentSpec = {
  driver: 'Command',
  command: ['sh', '-c', 'exec "$@"'],
  args: ['$(INPUT)'],
  env: [],
  input: 'Args',
  result: 'Envelope',
};

function plan(input: string) {
  mkdirSync(directories.run);
  const facts = { name: 'notes', uid: 's-1', agent: AGENT } as unknown as DriverOptions['facts'];
  const options = { facts, directories, path: '/usr/bin:/bin' } as DriverOptions;
  const requested = { command: AGENT.command, args: AGENT.args, field: 'agent.command', input };
  const hooks = { log: { stdout: () => {} }, event: () => {} } as unknown as Parameters<typeof planOnce>[2];
  return planOnce(options, { ...requested, request: () => ({}), variables: {} }, hooks, hiddenBy({}));
}

describe('a process that is planned', () => {
  test('whose argument cannot be given names it as the user’s own list counts it', () => {
    assert.throws(() => plan('a\0b'), { code: 'InvalidInput', message: /^agent\.args\[0\] holds a NUL/ });
    rmSync(directories.run, { recursive: true });
  });

  test('whose result file cannot be removed afterwards has ended all the same', () => {
    const { remove } = plan('x');
    rmSync(directories.run, { recursive: true });
    symlinkSync(directories.run, directories.run);
    remove();
  });
});

test('a process whose output cannot be read is killed, with its family, before that is told', async () => {
  let killed = false;
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const streams = { stdin: new PassThrough(), stdout: new PassThrough().end(), stderr: new PassThrough().end() };
  const kill = () => {
    killed = true;
    resolve();
  };
  const family = { ...streams, pid: 7, exited: Promise.resolve({ code: 0, signal: null }), gone, kill };
  const processes = { start: async () => family } as unknown as SessionProcesses;
  const reader = {
    push: () => {},
    finish: () => {
      throw new RangeError('deep');
    },
  };
  const none = () => {};
  const hooks = { started: none, active: none, collecting: none, signal: new AbortController().signal };
  const ran = runOnce(
    {
      field: 'agent.command',
      file: '/bin/true',
      argv0: 'true',
      args: [],
      cwd: '/',
      env: {},
      stdin: '',
      reader,
      remove: none,
    },
    processes,
    { flow: { full: false, whenRoom: none }, clock: new VirtualClock() },
    { ...hooks, log: { flush: none } } as unknown as Parameters<typeof runOnce>[3],
  );
  await assert.rejects(ran, /deep/);
  assert.equal(killed, true);
});

test('an agent that removed its state directory is started with its first arguments', async () => {
  const args = await argumentsOf({ ...AGENT, resumeArgs: ['again'] }, join(root, 'gone'));
  assert.deepEqual(args, ['$(INPUT)']);
});
