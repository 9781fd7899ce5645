import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { sessions } from '../../../core/resources/kinds.ts';
import { firstTurnName } from '../../../core/resources/names.ts';
import { eventually } from '../../support/eventually.ts';
import { ActedCluster } from './acted.ts';

const BERTH = join(import.meta.dirname, '..', '..', '..', 'bin', 'berth');

describe('a stdout that cannot be written', () => {
  let cluster: ActedCluster;
  beforeAll(async () => {
    cluster = await ActedCluster.start();
  });
  afterAll(() => cluster.close());

  /** Runs `berth` with these words, its stdout as the shell says; resolves with its exit code and its stderr. */
  const berth = (words: string, stdout: string) =>
    new Promise<{ code: number; stderr: string }>((resolve, reject) => {
      const script = `{ ${BERTH} ${words}; echo "code $?" >&2; } ${stdout}`;
      const env = { ...cluster.caller.env, ...cluster.env };
      execFile('sh', ['-c', script], { env, timeout: 60_000 }, (error, _, told) => {
        const [, stderr = '', code] = /^(.*)code (\d+)\n$/s.exec(told) ?? [];
        if (code === undefined) reject(error ?? new Error(told));
        else resolve({ code: Number(code), stderr });
      });
    });
  const sessionsOf = async (labelSelector?: string) => {
    const options = { namespace: 'default', ...(labelSelector === undefined ? {} : { labelSelector }) };
    return (await cluster.server.store.list(sessions, options)).items.map(({ metadata }) => metadata.name);
  };
  const error = { code: 'AgentFailed', message: 'exit code 1' } as const;

  test('and is closed: run --rm deletes its session and ends with the code of its turn', async () => {
    for (const [name, phase, expected] of [
      ['failing', 'Failed', 1],
      ['fine', 'Succeeded', 0],
    ] as const) {
      const ended = berth(`run --rm --name ${name} -- true`, '| true');
      const turn = firstTurnName(name);
      await cluster.given(turn);
      await cluster.end(turn, { phase, output: 'half', ...(phase === 'Failed' ? { error } : {}) });
      const { code, stderr } = await ended;
      assert.equal(code, expected, stderr);
      assert.deepEqual(await sessionsOf(), []);
      if (phase === 'Failed') assert.match(stderr, /turn \S+ Failed: AgentFailed: exit code 1\n/);
      assert.doesNotMatch(stderr, /stdout|EPIPE/);
    }
  });

  test('and is closed: map deletes the sessions that have not ended, and ends with 1 if a turn failed', async () => {
    const items = join(cluster.caller.root, 'items.jsonl');
    writeFileSync(items, '"a"\n"b"\n');
    const ended = berth(`map ${items} --name mapped --max 2 --unordered -- true`, '| true');
    const begun = await eventually(
      async () => {
        const found = await sessionsOf('berth.dev/map=mapped');
        return found.length === 2 ? found : undefined;
      },
      { what: 'two sessions are made' },
    );
    for (const name of begun) await cluster.given(firstTurnName(name));
    const [first = ''] = begun;
    await cluster.end(firstTurnName(first), { phase: 'Failed', error });
    const { code, stderr } = await ended;
    assert.equal(code, 1, stderr);
    assert.match(stderr, /the same command goes on with the rest/);
    assert.deepEqual(await sessionsOf('berth.dev/map=mapped'), [first]);
  });

  test('and is closed: a table, a watch and what is read from stdin end with 0 and no message', async () => {
    await cluster.session('shown');
    for (const words of ['list', 'list --watch', 'get shown -o yaml', 'logs - </dev/zero']) {
      assert.deepEqual(await berth(words, '| true'), { code: 0, stderr: '' }, words);
    }
    await cluster.remove('shown');
  });

  test('and is full: the command says so and ends with 1, and run --rm deletes its session', async () => {
    const message = /^berth: stdout cannot be written: ENOSPC.*\n$/m;
    const listed = await berth('version --client', '>/dev/full');
    assert.equal(listed.code, 1);
    assert.match(listed.stderr, message);
    const ended = berth('run --rm --name unread -- true', '>/dev/full');
    await cluster.given(firstTurnName('unread'));
    await cluster.end(firstTurnName('unread'), { phase: 'Succeeded', output: 'lost' });
    const { code, stderr } = await ended;
    assert.equal(code, 1, stderr);
    assert.match(stderr, message);
    assert.ok(!(await sessionsOf()).includes('unread'));
  });
});
