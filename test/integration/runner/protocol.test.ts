import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { FRAMES } from '../../../core/frames/catalogue.ts';
import { ASK_READY } from '../../../core/frames/encode.ts';
import { PROTOCOL_VERSION } from '../../../core/frames/messages.ts';
import { eventually } from '../../support/eventually.ts';
import { hasKeeper, RunnerHarness } from '../../support/runner-harness.ts';

const SAY = (output: string) =>
  `printf '%s{"status":"success","output":%s}%s\\n' "$BERTH_RESULT_START_MARKER" '${output}' "$BERTH_RESULT_END_MARKER"`;
const saying = (output: string, before = '') => ({ args: [`${before}\n${SAY(output)}`] });
const UNTIL_GO = 'until [ -e go ]; do sleep 0.02; done';

describe('the text of a turn', () => {
  const text = 'The same words again and again. '.repeat(400);
  const saysText = saying('1', `printf '%s' '${text}'`);
  /** The turn's `log` frame and the bytes of all frames, of a runner that speaks `own` to a controller that speaks `protocol`. */
  const logged = async (protocol: number, own = PROTOCOL_VERSION) => {
    const other = `${new URL('../../support/other-protocol.ts', import.meta.url)}?protocol=${own}`;
    const env = own === PROTOCOL_VERSION ? {} : { NODE_OPTIONS: `--import=${other}` };
    await using runner = new RunnerHarness({ agent: saysText, env });
    await runner.ready();
    let bytes = 0;
    runner.child.stdout?.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    runner.bind({ ...runner.message(), protocol });
    await runner.runTurn();
    return { ...(await runner.frame('log')), bytes };
  };

  test('travels compressed to a controller that reads that, as it is to an earlier one', async () => {
    const packed = await logged(PROTOCOL_VERSION);
    assert.ok(packed.message.text.startsWith(text) && packed.binary.length > 0);
    assert.ok(packed.bytes < text.length / 2, `${packed.bytes} bytes of frames for ${text.length} of text`);
    const plain = await logged(FRAMES.log.packedSince - 1, FRAMES.log.packedSince);
    assert.deepEqual([plain.message.text, plain.binary.length], [packed.message.text, 0]);
    assert.ok(plain.bytes > text.length);
  });
});

describe('ready and bind', () => {
  test('every empty line is answered by ready, before and after bind', async () => {
    await using runner = new RunnerHarness();
    const first = await runner.ready();
    assert.equal(first.podUID, runner.podUID);
    assert.match(first.boot, /^[0-9a-f]{32}$/);
    assert.deepEqual([first.session, first.incarnation, first.lastSeq, first.epoch], [undefined, undefined, 0, 0]);
    runner.bind();
    await runner.frame('bound');
    const second = await runner.ready();
    assert.equal(second.boot, first.boot);
    assert.deepEqual([second.session, second.incarnation, second.lastSeq, second.epoch], [runner.session.uid, 1, 1, 1]);
  });

  test('bound says how processes are held and whether the runner is closed to its agent', async () => {
    await using runner = await RunnerHarness.bound();
    const { containment, hardened, runnerVersion, protocol } = (await runner.frame('bound')).message;
    assert.deepEqual(
      [containment, hardened, protocol],
      [hasKeeper ? 'Keeper' : 'ProcessGroup', false, PROTOCOL_VERSION],
    );
    assert.match(runnerVersion, /^\d+\.\d+\.\d+$/);
  });

  test('without a keeper process groups stand in, and bound says so', async () => {
    await using runner = await RunnerHarness.bound({ processGroup: true, agent: saying('1') });
    assert.equal((await runner.frame('bound')).message.containment, 'ProcessGroup');
    assert.equal((await runner.runTurn()).output, 1);
  });

  test('the same bind again is answered bound, another is refused AlreadyBound', async () => {
    await using runner = await RunnerHarness.bound();
    runner.bind();
    await runner.frame('bound', (frame) => frame.seq === 2);
    const other = runner.message();
    runner.bind({ ...other, incarnation: 2 });
    runner.decoder.setChannel({
      session: runner.session.uid,
      incarnation: 1,
      boot: (await runner.ready()).boot,
      key: Buffer.from(other.keys.up, 'base64'),
    });
    runner.send('resend', { from: 3 });
    assert.equal((await runner.frame('refused')).message.code, 'AlreadyBound');
  });

  test('a bind that cannot be obeyed leaves the runner unbound and says why on stderr', async () => {
    await using runner = new RunnerHarness();
    await runner.ready();
    runner.bind({ ...runner.message(), keys: { up: 'AAAA', down: 'AAAA' } });
    await eventually(() => runner.stderr.includes('its keys are not of 32 bytes'));
    assert.equal((await runner.ready()).session, undefined);
    runner.bind();
    await runner.frame('bound');
  });

  test('a bind that fails leaves the runner unbound, says why on stderr, and can be bound later', async () => {
    await using runner = new RunnerHarness({ agent: { secretFiles: [{ path: 'key' }] } });
    await runner.ready();
    runner.bind();
    await eventually(() => /the session cannot be bound: ENOENT.*berth-secrets\/key/.test(runner.stderr));
    assert.equal((await runner.ready()).session, undefined);
    const folder = join(runner.root, 'berth-secrets');
    mkdirSync(folder);
    writeFileSync(join(folder, 'key'), 'correct-horse');
    runner.bind();
    await runner.frame('bound');
  });

  test('an end of stdin does not end the runner', async () => {
    await using runner = await RunnerHarness.bound({ agent: saying('1', 'sleep 0.3') });
    const turn = runner.startTurn();
    runner.stdin.end();
    assert.equal((await runner.result(turn)).outcome, 'Succeeded');
    await eventually(() => runner.processes().length === 0);
    runner.child.kill('SIGTERM');
    await runner.exited;
    await runner.frame('bye');
  });
});

describe('control lines', () => {
  test('junk, torn and forged lines have no effect, and the next whole line counts', async () => {
    await using runner = await RunnerHarness.bound({ agent: saying('"ok"') });
    const line = runner.lines('ping', {});
    runner.write('{"junk"\0\xff}\n');
    runner.write(`${line.slice(0, line.length / 2)}${ASK_READY}`);
    runner.write(`${line.slice(0, -9)}AAAAAAAA\n`);
    runner.write('x'.repeat(100_000));
    runner.write(ASK_READY);
    assert.equal((await runner.runTurn()).output, 'ok');
    assert.equal(runner.frames('pong').length, 0);
  });

  test('a line that comes twice counts once', async () => {
    await using runner = await RunnerHarness.bound();
    const line = runner.lines('ping', {});
    runner.write(line + line);
    runner.send('ping', {});
    await runner.frame('pong', (frame) => frame.message.n === 3);
    assert.deepEqual(
      runner.frames('pong').map((frame) => frame.message.n),
      [2, 3],
    );
  });

  test('a line of an earlier leadership is refused StaleEpoch', async () => {
    await using runner = await RunnerHarness.bound();
    runner.epoch = 5;
    runner.send('ping', {});
    runner.epoch = 4;
    const refusal = await runner.refusal(runner.send('shutdown', { graceMs: 0 }));
    assert.equal(refusal.code, 'StaleEpoch');
    assert.equal((await runner.ready()).epoch, 5);
  });
});

describe('turns', () => {
  test('a turn is started, its log and state come before its result, which names them', async () => {
    await using runner = await RunnerHarness.bound({
      agent: saying('{"a":1}', 'echo hello; echo x > $BERTH_STATE_DIR/f'),
    });
    const turn = runner.startTurn({ n: 3 });
    const result = await runner.result(turn);
    const started = await runner.frame('started');
    const [log] = runner.frames('log');
    const [state] = runner.frames('state');
    assert.ok(log && state && typeof result.state === 'object');
    assert.deepEqual([result.outcome, result.output, result.exitCode], ['Succeeded', { a: 1 }, 0]);
    assert.deepEqual([started.message.turn, started.message.attempt, started.message.at], [turn, 1, result.startedAt]);
    assert.equal(log.message.text, 'hello\n');
    assert.equal(result.logSeq, log.seq);
    assert.deepEqual(result.state, { seq: state.seq, digest: state.message.digest });
    const seqOfResult = runner.frames('result')[0]?.seq ?? 0;
    assert.ok(started.seq < log.seq && log.seq < state.seq && state.seq < seqOfResult);
    assert.ok(runner.openState(state).length > 0);
    assert.equal(runner.stderr, 'hello\n');
  });

  test('a state that did not change is not sent again', async () => {
    await using runner = await RunnerHarness.bound({
      agent: saying('1', '[ -e $BERTH_STATE_DIR/f ] || echo x > $BERTH_STATE_DIR/f'),
    });
    assert.equal(typeof (await runner.runTurn()).state, 'object');
    assert.equal((await runner.runTurn()).state, 'Unchanged');
    assert.equal(runner.frames('state').length, 1);
  });

  test('a turn without text has no log, an unused state directory no state', async () => {
    await using runner = await RunnerHarness.bound({ agent: saying('1') });
    const result = await runner.runTurn();
    assert.deepEqual([result.logSeq, result.state], [undefined, 'Unchanged']);
    assert.deepEqual([runner.frames('log').length, runner.frames('state').length], [0, 0]);
  });

  test('the line of the running turn again is answered started, another turn is refused Busy', async () => {
    await using runner = await RunnerHarness.bound({ agent: saying('1', UNTIL_GO) });
    const turn = runner.startTurn();
    await runner.frame('started');
    runner.startTurn(null, 30_000, turn);
    await eventually(() => runner.frames('started').length === 2);
    const n = runner.send('turn', { turn: 'other', name: 'o', index: 9, attempt: 1, input: 1, timeoutMs: 1000 });
    assert.equal((await runner.refusal(n)).code, 'Busy');
    writeFileSync(join(runner.directory('work'), 'go'), '');
    await runner.result(turn);
    assert.equal(runner.frames('result').length, 1);
  });

  test('a turn that ended and is not acknowledged is answered by its frames, once acknowledged by AlreadyDone', async () => {
    await using runner = await RunnerHarness.bound({ agent: saying('1', 'echo x >> $BERTH_STATE_DIR/ran; echo text') });
    const turn = runner.startTurn();
    await runner.result(turn);
    const repeated = runner.decoder.counters.repeated;
    runner.startTurn(null, 1000, turn);
    await eventually(() => runner.decoder.counters.repeated === repeated + 3, { what: 'log, state and result again' });
    runner.send('ack', { through: runner.decoder.next - 1 });
    const n = runner.send('turn', { turn, name: 't', index: 1, attempt: 1, input: null, timeoutMs: 1000 });
    assert.equal((await runner.refusal(n)).code, 'AlreadyDone');
    assert.equal(readFileSync(join(runner.directory('state'), 'ran'), 'utf8'), 'x\n');
  });

  test('a later attempt at a turn runs', async () => {
    await using runner = await RunnerHarness.bound({ agent: saying('1') });
    const turn = runner.startTurn();
    await runner.result(turn);
    runner.acknowledgeResults();
    runner.startTurn(null, 30_000, turn, 2);
    await runner.frame('result', (frame) => frame.message.attempt === 2);
  });

  test('frames that were lost come again on resend, those acknowledged are told as dropped', async () => {
    await using runner = await RunnerHarness.bound({ agent: saying('1', 'echo x > $BERTH_STATE_DIR/f; echo text') });
    runner.listening = false;
    const turn = runner.startTurn();
    await eventually(() => runner.stdout.includes('"kind":"result"'));
    runner.listening = true;
    runner.send('resend', { from: runner.decoder.next });
    assert.equal((await runner.result(turn)).outcome, 'Succeeded');
    runner.listening = false;
    runner.startTurn();
    const { next } = runner.decoder;
    await eventually(() => runner.stdout.split('"kind":"result"').length === 4, { what: 'a third result frame' });
    runner.send('ack', { through: next + 1 });
    runner.listening = true;
    runner.send('resend', { from: next });
    const dropped = await eventually(() => runner.events.find((event) => event.type === 'dropped'));
    assert.deepEqual([dropped.dropped.to, dropped.dropped.counts.log], [next + 1, 2]);
    await eventually(() => runner.frames('result').length === 2);
  });

  test('a suspended session refuses turns until it is resumed, and says so in pong', async () => {
    await using runner = await RunnerHarness.bound({ agent: saying('1') });
    runner.send('suspend', {});
    const n = runner.send('turn', { turn: 't', name: 't', index: 1, attempt: 1, input: null, timeoutMs: 1000 });
    assert.equal((await runner.refusal(n)).code, 'Suspended');
    runner.send('ping', {});
    assert.equal((await runner.frame('pong')).message.suspended, true);
    runner.send('resume', {});
    assert.equal((await runner.runTurn()).outcome, 'Succeeded');
  });

  test('pong tells the running turn, then the one not acknowledged, then none', async () => {
    await using runner = await RunnerHarness.bound({ agent: saying('1', UNTIL_GO) });
    const ping = async () => {
      const n = runner.send('ping', {});
      return (await runner.frame('pong', (frame) => frame.message.n === n)).message;
    };
    assert.equal((await ping()).turn, undefined);
    const turn = runner.startTurn();
    const started = await runner.frame('started');
    const { runningMs, uid, attempt, phase, startedAt } = (await ping()).turn ?? {};
    assert.deepEqual([uid, attempt, phase, startedAt], [turn, 1, 'Running', started.message.at]);
    assert.ok((runningMs ?? -1) >= 0);
    writeFileSync(join(runner.directory('work'), 'go'), '');
    await runner.result(turn);
    assert.equal((await ping()).turn?.phase, 'Finished');
    runner.send('ack', { through: runner.decoder.next - 1 });
    assert.equal((await ping()).turn, undefined);
  });

  test('cancel of a turn that ended or never was is refused', async () => {
    await using runner = await RunnerHarness.bound({ agent: saying('1') });
    assert.equal(
      (await runner.refusal(runner.send('cancel', { turn: 'x', outcome: 'Cancelled' }))).code,
      'UnknownTurn',
    );
    const turn = runner.startTurn();
    await runner.result(turn);
    assert.equal((await runner.refusal(runner.send('cancel', { turn, outcome: 'Cancelled' }))).code, 'AlreadyDone');
  });
});
