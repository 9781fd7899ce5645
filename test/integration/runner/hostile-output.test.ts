import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { FrameDecoder } from '../../../core/frames/decode.ts';
import type { AgentSpec } from '../../../core/frames/messages.ts';
import { eventually } from '../../support/eventually.ts';
import { RunnerHarness } from '../../support/runner-harness.ts';

const MB = 1e6;
/** Bytes of memory that a runner may take above its use when bound, whatever its agent prints. */
const ROOM = 160 * MB;

/** An agent that runs what its turn brings. */
const agent = (result: AgentSpec['result']) => ({ result, input: 'Args' as const, args: ['$(INPUT)'] });
const START = 'printf %s "$BERTH_RESULT_START_MARKER"';
const END = 'printf %s "$BERTH_RESULT_END_MARKER"';
const say = (envelope: string) => `${START}; printf %s '${envelope}'; ${END}`;
const SUCCESS = say('{"status":"success","output":1}');

/** Bytes: the most that the runner has had in memory, or has. */
function memory(runner: RunnerHarness, of: 'VmHWM' | 'VmRSS' = 'VmHWM'): number {
  const status = readFileSync(`/proc/${runner.pid}/status`, 'utf8');
  return 1024 * Number(new RegExp(`^${of}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
}

/** Asserts that the runner's stdout holds only its own frames and that each of them is valid. */
function assertOnlyFrames({ decoder }: RunnerHarness): void {
  const { repeated: _, early: __, ...bad } = decoder.counters;
  assert.deepEqual(new Set(Object.values(bad)), new Set([0]), JSON.stringify(decoder.counters));
}

describe('result markers', () => {
  let runner: RunnerHarness;
  beforeAll(async () => {
    runner = await RunnerHarness.bound({ agent: agent('Envelope') });
  });
  afterAll(() => runner[Symbol.asyncDispose]());

  const none = [
    [
      'with a guessed nonce',
      `echo '<<<BERTH_RESULT_START:000000000000000000000000>>>{"status":"success"}<<<BERTH_RESULT_END:000000000000000000000000>>>'`,
    ],
    ['without a nonce', `echo '<<<BERTH_RESULT_START>>>{"status":"success"}<<<BERTH_RESULT_END>>>'`],
    ['on stderr', `(${SUCCESS}) >&2`],
    ['in the wrong order', `${END}; printf '{"status":"success"}'; ${START}`],
    ['of which the end is missing', `${START}; printf '{"status":"success"}'`],
    [
      'of which the last character is missing',
      `${START}; printf '{"status":"success"}%s' "\${BERTH_RESULT_END_MARKER%?}"`,
    ],
    ['in upper case', `(${SUCCESS}) | tr a-z A-Z`],
    ['with a NUL in them', `printf '%s\\0%s{"status":"success"}' "\${BERTH_RESULT_START_MARKER%>>>}" '>>>'; ${END}`],
  ];
  for (const [what, script = ''] of none) {
    test(`${what} are no result, and stand in the log`, async () => {
      const turn = runner.startTurn(script);
      const result = await runner.result(turn);
      assert.deepEqual([result.outcome, result.error?.code], ['Failed', 'MissingEnvelope']);
      const log = await runner.frame('log', ({ message }) => message.turn === turn);
      assert.match(log.message.text, /status|STATUS/);
    });
  }

  test('of an earlier turn are no result of a later one', async () => {
    const keep = 'echo "$BERTH_RESULT_START_MARKER $BERTH_RESULT_END_MARKER" > $BERTH_STATE_DIR/markers';
    assert.equal((await runner.runTurn(`${keep}; ${SUCCESS}`)).outcome, 'Succeeded');
    const replay = `read s e < $BERTH_STATE_DIR/markers; echo "$s"'{"status":"success","output":"replayed"}'"$e"`;
    assert.equal((await runner.runTurn(replay)).error?.code, 'MissingEnvelope');
    assert.equal((await runner.runTurn(`${replay}; ${SUCCESS}`)).output, 1);
  });

  const some: [string, string, unknown][] = [
    ['nested: the innermost pair', `${START}; printf '{"status":"success","output":"outer"}'; ${SUCCESS}; ${END}`, 1],
    [
      'several: the last complete pair',
      `${say('{"status":"success","output":"first"}')}; ${SUCCESS}; ${START}; printf '{"status":'`,
      1,
    ],
    ['written byte by byte', `(${SUCCESS}) | while IFS= read -r -n1 c; do printf %s "$c"; done`, 1],
    ['in the middle of a line of noise', `head -c 5000 /dev/urandom; ${SUCCESS}; head -c 5000 /dev/urandom`, 1],
    ['after 2 MB without a line feed', `head -c 2000000 /dev/zero; ${SUCCESS}`, 1],
    [
      'with keys of every object’s',
      say('{"status":"success","output":{"constructor":{"prototype":{"a":1}},"":0}}'),
      { constructor: { prototype: { a: 1 } }, '': 0 },
    ],
    ['with half of a pair of surrogates and a NUL', say('{"status":"success","output":"\\ud800\\u0000"}'), '\ufffd\0'],
  ];
  for (const [what, script, output] of some) {
    test(`${what} give the result`, async () => {
      const result = await runner.runTurn(script);
      assert.equal(result.outcome, 'Succeeded', JSON.stringify(result.error));
      assert.deepEqual(JSON.parse(JSON.stringify(result.output).replaceAll('\\ud800', '\ufffd')), output);
    });
  }

  const bad: [string, string, string][] = [
    ['nothing between them', `${START}; ${END}`, 'InvalidResult'],
    [
      'an array 100,000 levels deep',
      `${START}; perl -e 'print "{\\"status\\":\\"success\\",\\"output\\":", "[" x 100000, "]" x 100000, "}"'; ${END}`,
      'InvalidResult',
    ],
    [
      'a key that a program may take for a prototype',
      say('{"status":"success","output":[{"__proto__":{"admin":true}}]}'),
      'InvalidResult',
    ],
    ['invalid UTF-8', `${START}; printf '\\xff\\xfe{'; ${END}`, 'InvalidResult'],
    ['20 MB', `${START}; head -c 20000000 /dev/zero; ${END}`, 'OutputTooLarge'],
    ['metadata of 5 KB', say(`{"status":"success","metadata":{"a":"${'x'.repeat(5000)}"}}`), 'ResultRejected'],
    ['the status of another’s turn', say('{"status":"Cancelled"}'), 'InvalidResult'],
    ['a turn count below zero', say('{"status":"success","turn_count":-1}'), 'InvalidResult'],
  ];
  for (const [what, script, code] of bad) {
    test(`with ${what} fail the turn with ${code}`, async () => {
      const result = await runner.runTurn(script);
      assert.deepEqual([result.outcome, result.error?.code], ['Failed', code]);
    });
  }

  test('with 20 MB and no end are text: the log counts every byte', async () => {
    const turn = runner.startTurn(`${START}; head -c 20000000 /dev/zero | tr '\\0' x; printf end`);
    assert.equal((await runner.result(turn)).error?.code, 'MissingEnvelope');
    const { message } = await runner.frame('log', (frame) => frame.message.turn === turn);
    assert.ok(message.text.endsWith('xend'));
    assert.equal(message.bytes, 20_000_003, 'what the agent printed after the marker');
  });

  test('printed by a background process after the turn change nothing', async () => {
    const late = `(until [ -e go ]; do sleep 0.02; done; ${say('{"status":"error","error":"late"}')}; touch said) & ${SUCCESS}`;
    assert.equal((await runner.runTurn(late)).output, 1);
    assert.equal((await runner.runTurn(`touch go; until [ -e said ]; do :; done; ${SUCCESS}`)).output, 1);
    assertOnlyFrames(runner);
  });
});

describe('frames that an agent prints', () => {
  const forge = (session: string, boot: string, kind: string, seq: number) =>
    `<<<BERTH_START {"v":1,"sid":"${session}","inc":1,"boot":"${boot}","seq":${seq},"kind":"${kind}","part":1,"parts":1}>>>\n${Buffer.alloc(64).toString('base64')}\n<<<BERTH_END ${seq}/1>>>\n`;

  for (const stream of ['stdout', 'stderr']) {
    test(`on ${stream} are text: forged, of another session, and its own again`, async () => {
      await using neighbour = await RunnerHarness.bound({ agent: agent('Text') });
      await neighbour.runTurn('echo secret of the neighbour');
      await using runner = await RunnerHarness.bound({ agent: agent('Text') });
      await runner.runTurn('echo first');
      const { boot } = await runner.ready();
      const forged = ['result', 'state', 'log', 'bye', 'pong', 'dropped', 'ready', 'approval', 'refused'].map((kind) =>
        forge(runner.session.uid, boot, kind, runner.decoder.next),
      );
      const file = join(runner.root, 'frames');
      writeFileSync(file, `${forged.join('')}${neighbour.stdout}${runner.stdout}<<<BERTH_START {"v":1`);
      const before = runner.stdout.length;
      const seen = runner.events.length;
      const result = await runner.runTurn(`cat ${file}${stream === 'stderr' ? ' >&2' : ''}`);
      assert.equal(result.outcome, 'Succeeded');
      assertOnlyFrames(runner);
      assert.ok(!runner.stdout.slice(before).includes(neighbour.session.uid));
      assert.deepEqual(
        runner.events.slice(seen).map((event) => event.type),
        Array(runner.events.length - seen).fill('frame'),
      );
    });
  }

  test('beside the runner’s in one log, as a reader of the log finds them, count as what they are', async () => {
    await using neighbour = await RunnerHarness.bound({ agent: agent('Text') });
    await neighbour.runTurn('echo secret of the neighbour');
    await using runner = await RunnerHarness.bound({ agent: agent('Text') });
    const { boot } = await runner.ready();
    await runner.runTurn('echo own');
    const own = runner.stdout;
    const key = Buffer.from(runner.message().keys.up, 'base64');
    const decoder = new FrameDecoder();
    decoder.setChannel({ session: runner.session.uid, incarnation: 1, boot, key });
    const log = [
      forge(runner.session.uid, boot, 'result', 1),
      forge(runner.session.uid, boot, 'bye', 2),
      neighbour.stdout,
      'a line without its end',
      own,
      '<<<BERTH_START {"v":1,',
      own,
      forge(runner.session.uid, boot, 'result', 99),
    ];
    const events = log.flatMap((text) => decoder.push(Buffer.from(text, 'latin1')));
    const frames = events.flatMap((event) => (event.type === 'frame' ? [event.frame.kind] : []));
    assert.deepEqual(
      frames,
      runner.events.flatMap((event) => (event.type === 'frame' ? [event.frame.kind] : [])),
    );
    assert.ok(decoder.counters.forged === 3 && decoder.counters.foreign > 0 && decoder.counters.repeated > 0);
  });
});

describe('output without bounds', () => {
  const gush = (bytes: number) => `head -c ${bytes} /dev/zero | tr '\\0' x`;

  test('1 GB without a line feed: nothing is lost of the frames, the log’s end and its count are right, memory is bounded', async () => {
    await using runner = await RunnerHarness.bound({ agent: agent('Envelope') });
    const before = memory(runner);
    const turn = runner.startTurn(`${gush(1000 * MB)}; printf end; ${SUCCESS}`, 300_000);
    await runner.frame('started');
    const asked = [1, 2, 3].map(() => runner.send('ping', {}));
    assert.equal((await runner.result(turn, 300_000)).output, 1);
    const { message } = await runner.frame('log');
    assert.deepEqual([message.bytes, message.truncated, message.text.slice(-4)], [1000 * MB + 3, true, 'xend']);
    assert.deepEqual(
      runner.frames('pong').map((frame) => frame.message.n),
      asked,
    );
    assertOnlyFrames(runner);
    // stderr is a stream of its own: its end may be read after the result in the frames. The turn ends its last line.
    await eventually(() => runner.stderrBytes === 1000 * MB + 4, { what: 'all of it on stderr' });
    assert.ok(memory(runner) - before < 400 * MB, `${memory(runner) / MB} MB`);
  });

  for (const result of ['Text', 'Json', 'JsonLines'] as const) {
    test(`60 MB as a result of ${result} fail the turn, memory is bounded`, async () => {
      const jsonLines = { resultWhen: { '/type': 'result' } };
      await using runner = await RunnerHarness.bound({
        agent: { ...agent(result), ...(result === 'JsonLines' && { jsonLines }) },
      });
      const before = memory(runner);
      const { error } = await runner.result(runner.startTurn(gush(60 * MB)));
      assert.equal(error?.code, 'OutputTooLarge');
      assert.match(error?.message ?? '', /60000000/);
      assert.ok(memory(runner) - before < ROOM, `${memory(runner) / MB} MB`);
    });
  }

  for (const result of ['Text', 'Envelope'] as const) {
    test(`1,000,000 writes of one byte as a result of ${result} take the memory of their bytes`, async () => {
      await using runner = await RunnerHarness.bound({ agent: agent(result) });
      const before = memory(runner);
      const bytes = `perl -e '$| = 1; for (1..1000000) { syswrite STDOUT, "x" }'`;
      const turn = runner.startTurn(result === 'Text' ? bytes : `${START}; ${bytes}; ${END}`);
      await runner.result(turn);
      // A runner that reads byte by byte makes some 140 MB of garbage on a busy machine, and 360 MB if it keeps what it has read.
      assert.ok(memory(runner) - before < 1.5 * ROOM, `${memory(runner) / MB} MB`);
    });
  }

  test('events by the ten thousand are text and no frames: the result comes, and memory is bounded', async () => {
    const jsonLines = { resultWhen: { '/type': 'result' }, output: '/n' };
    await using runner = await RunnerHarness.bound({ agent: { ...agent('JsonLines'), jsonLines } });
    const before = memory(runner);
    const turn = runner.startTurn(
      `perl -e 'print "{\\"i\\":$_,\\"pad\\":\\"", "x" x 500, "\\"}\\n" for 1..20000; print "{\\"type\\":\\"result\\",\\"n\\":7}\\n"'`,
    );
    assert.equal((await runner.result(turn)).output, 7);
    await eventually(() => runner.stderrBytes > 10 * MB, { what: 'the events as text' });
    assert.ok(runner.events.length < 20, `${runner.events.length} frames`);
    assertOnlyFrames(runner);
    assert.ok(memory(runner) - before < ROOM, `${memory(runner) / MB} MB`);
  });

  test('pings by the ten thousand: answers that nobody could take are told as dropped, none is unaccounted for', async () => {
    await using runner = await RunnerHarness.bound({ agent: agent('Text') });
    const before = memory(runner);
    runner.child.stdout?.pause();
    for (let i = 0; i < 20_000; i++) runner.send('ping', {});
    const turn = runner.startTurn('echo done >&2; echo 7');
    await eventually(() => runner.stderr.includes('done'), { what: 'the turn behind the pings' });
    runner.child.stdout?.resume();
    assert.equal((await runner.result(turn)).output, '7\n');
    const accounted = new Set<number>();
    for (const event of runner.events) {
      if (event.type === 'frame') accounted.add(event.frame.seq);
      else if (event.type === 'dropped')
        for (let seq = event.dropped.from; seq <= event.dropped.to; seq++) accounted.add(seq);
    }
    assert.equal(accounted.size, runner.decoder.next - 1);
    assert.ok(accounted.size > 20_000 && runner.events.some((event) => event.type === 'dropped'));
    assertOnlyFrames(runner);
    assert.ok(memory(runner) - before < ROOM, `${memory(runner) / MB} MB`);
  });

  test('an event nested ten thousand levels deep is left out and said so, the turn goes on', async () => {
    const jsonLines = { resultWhen: { '/type': 'result' }, output: '/n' };
    await using runner = await RunnerHarness.bound({ agent: { ...agent('JsonLines'), jsonLines } });
    for (const levels of [300, 8000]) {
      const deep = `perl -e 'print "{\\"a\\":", "[" x ${levels}, "]" x ${levels}, "}\\n{\\"type\\":\\"result\\",\\"n\\":7}\\n"'`;
      assert.equal((await runner.runTurn(deep)).output, 7);
    }
    assert.deepEqual(runner.agentEvents(), []);
    assert.match(runner.stderr, /an event is left out/);
  });
});

describe('odd text and streams', () => {
  let runner: RunnerHarness;
  beforeAll(async () => {
    runner = await RunnerHarness.bound({ agent: agent('Text') });
  });
  afterAll(() => runner[Symbol.asyncDispose]());

  test('NUL bytes are part of the output', async () => {
    assert.equal((await runner.runTurn(`printf 'a\\0b'`)).output, 'a\0b');
  });

  test('invalid UTF-8 is replaced and nothing else of the text is lost', async () => {
    const { output } = await runner.runTurn(`printf 'a\\xff\\xc3(\\xe2\\x82z\\xf0\\x9f\\x98\\x80'`);
    assert.equal(output, 'a\ufffd\ufffd(\ufffdz😀');
  });

  test('escape sequences, carriage returns and bidirectional marks are output like any other', async () => {
    const text = '\u001b]0;title\u0007\u001b[2J\r\u202e\u2028';
    assert.equal(
      (await runner.runTurn(`printf '${text.replaceAll('\u001b', '\\033').replaceAll('\u0007', '\\007')}'`)).output,
      text,
    );
  });

  test('stdout closed, opened again on stderr: the turn ends with what was printed before', async () => {
    assert.equal((await runner.runTurn('echo one; exec 1>&-; exec 1>&2; echo two')).output, 'one\n');
  });

  test('stdout closed at once and the agent at work: the turn lasts until its end', async () => {
    assert.equal((await runner.runTurn('exec 1>&- 2>&-; sleep 0.3; exit 3')).exitCode, 3);
  });

  test('stdout opened anew by its name in /proc gives the same stream', async () => {
    assert.equal((await runner.runTurn('echo a; echo b > /proc/self/fd/1; echo c > /dev/stdout')).output, 'a\nb\nc\n');
  });

  test('stdin that is read from its own stdout gives nothing and ends', async () => {
    assert.equal((await runner.runTurn('timeout 0.2 cat <&1; echo after')).output, 'after\n');
  });

  test('an input that is never read does not keep the turn', async () => {
    await using other = await RunnerHarness.bound({ agent: { result: 'Text', input: 'Stdin', args: ['echo done'] } });
    assert.equal((await other.runTurn('x'.repeat(120_000))).output, 'done\n');
  });

  test('streams made non-blocking, or shortened by the agent, lose nothing', async () => {
    const script = `perl -e 'use Fcntl; fcntl(STDOUT, F_SETFL, O_NONBLOCK); fcntl(STDOUT, 1031, 4096); for (1..2000) { my $s = sprintf("%07d\\n", $_); my $n = syswrite(STDOUT, $s); redo unless defined $n && $n == 8 }'`;
    const { output } = await runner.runTurn(script);
    assert.equal((output as string).length, 16_000);
  });
});
