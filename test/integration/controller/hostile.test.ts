import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import type { StoredTurn } from '../../../core/resources/kinds.ts';
import { type ControllerProcess, ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

/** Runs what its turn brings. */
const agent = { command: ['/bin/bash', '-c'], args: ['$(INPUT)'], input: 'Args' as const, result: 'Text' as const };
const ENVELOPE = (json: string) => `berth-agent result '${json}' || true`;

/** Attacks of an agent on its session, and the checks of how the turn may end. */
const ATTACKS: [what: string, script: string, check: (turn: StoredTurn) => boolean][] = [
  [
    '30 MB without a line feed',
    "head -c 30000000 /dev/zero | tr '\\0' x",
    ({ status }) => status?.error?.code === 'OutputTooLarge',
  ],
  [
    'forged frames',
    `for i in 1 2 3; do echo '<<<BERTH_START {"v":1,"sid":"x","inc":1,"boot":"b","seq":'$i',"kind":"result","part":1,"parts":1}>>>'; echo AAAA; echo "<<<BERTH_END $i/1>>>"; done | tee /dev/stderr`,
    ({ status }) => status?.phase === 'Succeeded',
  ],
  [
    'a key that the API refuses',
    ENVELOPE('{"__proto__":{"a":1}}'),
    ({ status }) => status?.phase === 'Succeeded' && status.output === '',
  ],
  [
    'keys of every object’s',
    ENVELOPE('{"constructor":{"prototype":{"b":1}},"":0}'),
    ({ status }) => status?.phase === 'Succeeded',
  ],
  ['half characters and NULs', ENVELOPE('"\\ud800\\u0000\\udfff"'), ({ status }) => status?.phase === 'Succeeded'],
  [
    'an output of 250 levels',
    ENVELOPE(`${'['.repeat(250)}${']'.repeat(250)}`),
    ({ status }) => status?.phase !== undefined,
  ],
  [
    'events by the thousand',
    `for i in {1..40}; do for j in {1..25}; do printf '{"do":"event","event":{"i":%s}}\\n' $i$j; done; done | python3 -c 'import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(os.environ["BERTH_SOCKET"]); s.sendall(sys.stdin.buffer.read()); n = 0
while n < 1000: n += s.recv(65536).count(10)'`,
    ({ status }) => status?.phase === 'Succeeded',
  ],
  [
    'forty children left behind',
    'for i in {1..40}; do (setsid sleep 300 >/dev/null 2>&1 &); done; echo done',
    ({ status }) => status?.phase === 'Succeeded',
  ],
  [
    'a state directory that is a link',
    'rm -rf $BERTH_STATE_DIR; ln -s / $BERTH_STATE_DIR',
    ({ status }) => status?.error?.code === 'StateNotStored',
  ],
  ['its keeper killed', 'kill -KILL $PPID; sleep 60', ({ status }) => status?.phase === 'Failed'],
  [
    'its runner killed',
    "kill -KILL $(awk '/PPid/ {print $2}' /proc/$PPID/status); sleep 60",
    ({ status }) => status?.phase === 'Failed',
  ],
  [
    'its runner stopped for a while',
    "r=$(awk '/PPid/ {print $2}' /proc/$PPID/status); (sleep 1; kill -CONT $r) & kill -STOP $r; wait",
    ({ status }) => status?.phase === 'Succeeded',
  ],
];

describe('a session whose agent is hostile', () => {
  const cluster = installed(ONE_LEADER);
  let controller: ControllerProcess;
  beforeAll(async () => {
    controller = cluster.startController();
    await cluster.create('neighbour', { agent });
    await cluster.create('hostile', { agent });
  });

  for (const [i, [what, script, check]] of ATTACKS.entries()) {
    test(`${what}: its turn ends, its neighbour’s turn at the same time is right, the controller goes on`, async () => {
      await cluster.turn('hostile', `hostile-${i}`, script);
      await cluster.turn(
        'neighbour',
        `neighbour-${i}`,
        `echo ${i}; echo ${i} >> $BERTH_STATE_DIR/n; wc -l < $BERTH_STATE_DIR/n`,
      );
      const other = await cluster.ended(`neighbour-${i}`);
      assert.deepEqual([other.status?.output, other.status?.attempt], [`${i}\n${i + 1}\n`, 1]);
      const own = await cluster.ended(`hostile-${i}`);
      assert.ok(check(own), JSON.stringify(own.status));
      assert.deepEqual([controller.child.exitCode, controller.child.signalCode], [null, null]);
    });
  }

  test('has a next turn like any other once it behaves, and leaves no process when it is deleted', async () => {
    await cluster.turn('hostile', 'hostile-last', 'rm -rf $BERTH_STATE_DIR; mkdir $BERTH_STATE_DIR; echo well');
    assert.equal((await cluster.ended('hostile-last')).status?.output, 'well\n');
    const [pod] = await cluster.podsOf('hostile');
    assert.ok(pod);
    await cluster.delete('hostile');
    await cluster.gone('hostile', pod);
  });

  test('is in the log of the controller by no error', () => {
    const levels = cluster
      .logs()
      .split('\n')
      .filter((line) => /"level":"(error|fatal)"/.test(line));
    assert.deepEqual(levels, []);
  });
});
