import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { approvals, sessions } from '../../../core/resources/kinds.ts';
import { OnTerminal } from '../../support/on-terminal.ts';
import { ActedCluster, condition } from './acted.ts';

const BERTH = join(import.meta.dirname, '..', '..', '..', 'bin', 'berth');
const NAMESPACE = 'default';

describe('on a terminal', () => {
  let cluster: ActedCluster;
  beforeAll(async () => {
    cluster = await ActedCluster.start();
    await cluster.session('notes');
    const why = 'All 4 slots of the installation are taken by other sessions.';
    await cluster.say('notes', { phase: 'Queued', conditions: [condition('Ready', 'False', 'AtCapacity', why)] });
  });
  afterAll(() => cluster.close());

  const run = (command: string, env: NodeJS.ProcessEnv = {}) => new OnTerminal(command, { ...cluster.env, ...env });
  const exists = (name: string) =>
    cluster.server.store.get(sessions, { namespace: NAMESPACE, name }).then(
      () => true,
      () => false,
    );

  test('tables have colour, not with NO_COLOR, and not in a pipe', async () => {
    const shown = async (command: string, env?: NodeJS.ProcessEnv) => {
      const terminal = run(command, env);
      assert.equal(await terminal.ended, 0);
      return terminal.shown;
    };
    assert.ok((await shown(`${BERTH} list`)).includes('\x1b[33mQueued\x1b[0m'));
    for (const other of [await shown(`${BERTH} list`, { NO_COLOR: '1' }), await shown(`${BERTH} list | cat`)]) {
      assert.match(other, /notes +Queued/);
      assert.ok(!other.includes('\x1b['), other);
    }
  });

  test('tables fit its width, and keep a condition’s whole message', async () => {
    const terminal = run(`stty cols 70; ${BERTH} get notes`, { NO_COLOR: '1' });
    assert.equal(await terminal.ended, 0);
    const lines = terminal.shown.split(/\r?\n/);
    const from = lines.findIndex((line) => line.startsWith('CONDITION'));
    for (const line of lines.slice(from)) assert.ok(line.length <= 70, JSON.stringify(line));
    const text = lines.slice(from).join(' ').replace(/\s+/g, ' ');
    assert.match(text, /All 4 slots of the installation are taken by other sessions\./);
  });

  test('delete asks, and deletes only after y', async () => {
    for (const [answer, code, isLeft] of [
      ['\n', 1, true],
      ['no\n', 1, true],
      ['\x04', 1, true],
      ['y\n', 0, false],
    ] as const) {
      if (!(await exists('asked'))) await cluster.session('asked');
      const terminal = run(`${BERTH} delete asked`);
      await terminal.says(/Delete session asked with its turns, pods and stored state\? \[y\/N\]/);
      terminal.types(answer);
      assert.equal(await terminal.ended, code, terminal.shown);
      assert.equal(await exists('asked'), isLeft);
      assert.match(terminal.shown, isLeft ? /nothing is deleted/ : /asked deleted/);
    }
  });

  test('what was typed before the question is no answer to it', async () => {
    await cluster.session('ahead');
    const terminal = run(`echo typed; read -r go; ${BERTH} delete ahead`);
    await terminal.says(/typed/);
    terminal.types('go\ny\ny');
    await terminal.says(/\[y\/N\]/);
    terminal.types('\n');
    assert.equal(await terminal.ended, 1, terminal.shown);
    assert.ok(await exists('ahead'));
  });

  test('Ctrl-C at the question ends with 130 and deletes nothing', async () => {
    await cluster.session('stays');
    const terminal = run(`${BERTH} delete stays; echo ended with $?`);
    await terminal.says(/\[y\/N\]/);
    terminal.types('\x03');
    await terminal.ended;
    assert.ok(await exists('stays'));
  });

  test('delete --yes does not ask, and neither does delete without a terminal', async () => {
    for (const name of ['sure', 'piped', 'quiet']) await cluster.session(name);
    assert.equal(await run(`${BERTH} delete sure -y`).ended, 0);
    assert.equal(await run(`${BERTH} delete piped </dev/null`).ended, 0);
    assert.equal(await run(`${BERTH} delete quiet 2>/dev/null`).ended, 0);
    for (const name of ['sure', 'piped', 'quiet']) assert.ok(!(await exists(name)));
  });

  test('approve shows the request without control characters and asks', async () => {
    await cluster.session('asks');
    await cluster.turn('asks-1', 'asks');
    const approval = {
      id: 'r1',
      prompt: 'Go on?\x1b[2J',
      since: '2026-01-01T00:00:00Z',
      process: 'Ended' as const,
      incarnation: 1,
      seq: 1,
      ranMs: 1,
    };
    await cluster.end('asks-1', { phase: 'AwaitingApproval', approval });
    const decide = async (answer: string) => {
      const terminal = run(`${BERTH} approve asks --deny`);
      await terminal.says(/asks: Go on\?\\x1b\[2J\s+Deny it\? \[y\/N\]/);
      terminal.types(answer);
      return [await terminal.ended, terminal.shown] as const;
    };
    assert.match((await decide('n\n'))[1], /nothing is decided/);
    const all = async () => (await cluster.server.store.list(approvals, { namespace: NAMESPACE })).items;
    assert.deepEqual(await all(), []);
    assert.equal((await decide('yes\n'))[0], 0);
    assert.equal((await all())[0]?.spec.decision, 'Deny');
  });
});
