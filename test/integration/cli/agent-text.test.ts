import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { OnTerminal } from '../../support/on-terminal.ts';
import { ActedCluster, condition } from './acted.ts';

const BERTH = join(import.meta.dirname, '..', '..', '..', 'bin', 'berth');
/** Sets the title, clears the screen, pretends to be a line of its own, and is red. */
const HOSTILE = '\x1b[31mbad\n\x1b]0;title\x07\x1b[2Jx\u009b1m\u202e';
const SHOWN = '\x1b[31mbad\n\\x1b]0;title\\x07\\x1b[2Jx\\x9b1m\\u202e';

describe('text of an agent', () => {
  let cluster: ActedCluster;
  beforeAll(async () => {
    cluster = await ActedCluster.start();
    await cluster.session('loud');
  });
  afterAll(() => cluster.close());

  const onTerminal = async (command: string, env: NodeJS.ProcessEnv = {}) => {
    const terminal = new OnTerminal(`${BERTH} ${command}`, { ...cluster.env, ...env });
    const code = await terminal.ended;
    return { code, shown: terminal.shown.replaceAll('\r\n', '\n') };
  };
  /** Starts a turn and ends it as soon as it is there. */
  const ends = async (name: string, status: Parameters<ActedCluster['end']>[1]) => {
    await cluster.given(name);
    await cluster.end(name, status);
  };
  const failure = { phase: 'Failed', error: { code: 'AgentFailed', message: HOSTILE } } as const;
  const isPlain = (text: string) => ['\x1b', '\x07', '\u009b', '\u202e'].every((char) => !text.includes(char));
  const hanging = (text: string) => text.replace('\n', '\n  ');

  test('is safe in the line of a failure: on a terminal, with --quiet, and without colours in a pipe', async () => {
    for (const [name, flags] of [
      ['told', ''],
      ['quiet', ' --quiet'],
    ] as const) {
      const [{ code, shown }] = await Promise.all([
        onTerminal(`turn loud --text x --name ${name}${flags}`),
        ends(name, failure),
      ]);
      assert.equal(code, 1);
      assert.ok(shown.includes(`turn ${name} Failed: AgentFailed: ${hanging(SHOWN)}\x1b[0m\n`), JSON.stringify(shown));
    }
    const [{ stderr }] = await Promise.all([
      cluster.berth('turn', 'loud', '--text', 'x', '--name', 'piped'),
      ends('piped', failure),
    ]);
    assert.equal(stderr, `turn piped Failed: AgentFailed: ${hanging(SHOWN.replace('\x1b[31m', ''))}\n`);
  });

  test('is safe in get turn and logs on a terminal, whose colours it may set, and is as it was in a pipe', async () => {
    await cluster.turn('logged', 'loud');
    await cluster.end('logged', {
      ...failure,
      log: { bytes: Buffer.byteLength(HOSTILE), inline: HOSTILE, truncated: false },
    });
    for (const command of ['logs loud --turn logged', 'get turn logged']) {
      const { shown } = await onTerminal(command);
      assert.ok(shown.includes('bad\n') && shown.includes('\\x1b]0;title\\x07\\x1b[2Jx\\x9b1m\\u202e'), shown);
      assert.ok(shown.includes('\x1b[31mbad') && shown.endsWith('\x1b[0m'), JSON.stringify(shown));
      assert.ok(isPlain(shown.replaceAll('\x1b[31m', '').replaceAll('\x1b[0m', '')), JSON.stringify(shown));
      assert.ok(isPlain((await onTerminal(command, { NO_COLOR: '1' })).shown));
    }
    const { stdout } = await cluster.berth('logs', 'loud', '--turn', 'logged');
    assert.equal(stdout, `${HOSTILE}\n`);
  });

  test('is safe as an output on a terminal, and unchanged in a pipe', async () => {
    const ended = { phase: 'Succeeded', output: HOSTILE } as const;
    const [{ shown }] = await Promise.all([
      onTerminal('turn loud --text x --name shown --quiet'),
      ends('shown', ended),
    ]);
    assert.equal(shown, `${SHOWN}\n\x1b[0m`);
    const [{ stdout }] = await Promise.all([
      cluster.berth('turn', 'loud', '--text', 'x', '--name', 'kept'),
      ends('kept', ended),
    ]);
    assert.equal(stdout, `${HOSTILE}\n`);
  });

  test('is one safe line in the reason for which a turn waits', async () => {
    const asks = condition('ApprovalPending', 'True', 'ApprovalPending', `Turn asking asks: ${HOSTILE}`);
    await cluster.session('asking');
    await cluster.say('asking', { phase: 'Ready', conditions: [asks] });
    const turn = cluster.start('turn', 'asking', '--text', 'x', '--name', 'asking-1');
    await turn.says(/waiting: .*approve asking/);
    await cluster.end('asking-1', { phase: 'Succeeded', output: 1 });
    const { stderr } = await turn.ended;
    assert.match(
      stderr,
      /^waiting: Turn asking asks: bad \\x1b\]0;title\\x07\\x1b\[2Jx\\x9b1m\\u202e; to decide: .*\n$/,
    );
  });
});
