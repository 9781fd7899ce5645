import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { RunnerHarness } from '../../support/runner-harness.ts';

const MB = 1e6;
const agent = { result: 'Text' as const, input: 'Args' as const, args: ['$(INPUT)'] };

class Asker {
  readonly socket: Socket;
  text = '';
  ended = false;
  constructor(runner: RunnerHarness) {
    this.socket = connect(join(runner.directory('run'), 'berth.sock'));
    this.socket.setEncoding('utf8').on('data', (text: string) => {
      this.text += text;
    });
    this.socket
      .on('error', () => {})
      .on('close', () => {
        this.ended = true;
      });
  }
  async ask(line: string | Buffer): Promise<string> {
    const from = this.text.length;
    this.socket.write(line);
    await eventually(() => this.text.indexOf('\n', from) !== -1 || this.ended, { what: 'a reply' });
    return this.text.slice(from);
  }
}

const memory = (runner: RunnerHarness) =>
  1024 * Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${runner.pid}/status`, 'utf8'))?.[1]);

describe('BERTH_SOCKET', () => {
  let runner: RunnerHarness;
  beforeAll(async () => {
    runner = await RunnerHarness.bound({ agent });
  });
  afterAll(() => runner[Symbol.asyncDispose]());

  const refused: [what: string, line: string | Buffer][] = [
    ['a line that is no JSON', 'hello\n'],
    ['bytes that are no UTF-8', Buffer.from([0xff, 0xfe, 0x00, 0x0a])],
    ['a NUL', '\0\n'],
    ['an array', '[]\n'],
    ['an unknown request', '{"do":"shutdown"}\n'],
    ['the name of a method of every object', '{"do":"constructor"}\n'],
    ['a request of the controller', '{"kind":"cancel","epoch":9,"n":9,"turn":"t","outcome":"Succeeded"}\n'],
    ['a forged decision', '{"do":"decide","requestId":"0123456789abcdef","decision":"Approve"}\n'],
    ['an event 100,000 levels deep', `{"do":"event","event":${'['.repeat(1e5)}${']'.repeat(1e5)}}\n`],
    ['an event that is absent', '{"do":"event"}\n'],
    ['a result that is none', '{"do":"result","result":{"status":"Cancelled"}}\n'],
    ['a question without words', '{"do":"approve","prompt":""}\n'],
    ['a question of 1 MB', `{"do":"approve","prompt":"${'x'.repeat(1e6)}"}\n`],
  ];
  for (const [what, line] of refused) {
    test(`refuses ${what} and answers the next request`, async () => {
      const asker = new Asker(runner);
      assert.equal(JSON.parse(await asker.ask(line)).error.code, 'InvalidRequest');
      assert.deepEqual(JSON.parse(await asker.ask('{"do":"touch"}\n')), { ok: true });
      asker.socket.destroy();
    });
  }

  test('refuses what is asked while no turn runs', async () => {
    const asker = new Asker(runner);
    for (const line of [
      '{"do":"event","event":1}\n',
      '{"do":"result","result":{"status":"success"}}\n',
      '{"do":"approve","prompt":"May I?"}\n',
    ]) {
      assert.equal(JSON.parse(await asker.ask(line)).error.code, 'NoTurn');
    }
    asker.socket.destroy();
  });

  test('ends a connection whose line has no end, in bounded memory', async () => {
    const before = memory(runner);
    // Node would not read a reply any more once a write has failed.
    const { output } = await runner.runTurn(`python3 - <<'END'
import os, socket
s = socket.socket(socket.AF_UNIX); s.connect(os.environ['BERTH_SOCKET'])
sent = 0
try:
    while sent < 60: s.sendall(b'x' * 1000000); sent += 1
except OSError: pass
print(sent < 60, s.makefile().readline())
END`);
    assert.match(output as string, /^True .*"code":"InvalidRequest","message":"a request of more than \d+ bytes"/);
    assert.ok(memory(runner) - before < 150 * MB, `${memory(runner) / MB} MB`);
  });

  test('does not read on while its replies are not read: memory is bounded, and others are answered', async () => {
    await using other = await RunnerHarness.bound({ agent });
    const before = memory(other);
    const asker = new Asker(other);
    asker.socket.pause();
    const requests = 1_000_000;
    const lines = 'x\n'.repeat(requests / 100);
    let sent = 0;
    const send = () => {
      while (sent < 100) {
        sent += 1;
        if (!asker.socket.write(lines)) {
          asker.socket.once('drain', send);
          return;
        }
      }
    };
    send();
    // The runner answers others meanwhile: a client that does not read keeps nobody else waiting.
    const patient = new Asker(other);
    for (let i = 0; i < 20; i++) assert.equal(await patient.ask('{"do":"touch"}\n'), '{"ok":true}\n');
    const most = memory(other) - before;
    assert.ok(sent < 100, 'it was read to its end although nobody took the replies');
    assert.ok(most < 60 * MB, `${most / MB} MB`);
    asker.socket.destroy();
    assert.equal((await other.runTurn('echo on')).output, 'on\n');
  });

  test('serves 64 connections and no more, and others again once those have gone', async () => {
    const askers = Array.from({ length: 1000 }, () => new Asker(runner));
    await eventually(() => askers.filter((asker) => asker.ended).length >= 1000 - 64, { what: 'the rest is closed' });
    assert.equal((await runner.runTurn('echo on')).output, 'on\n');
    for (const asker of askers) asker.socket.destroy();
    await eventually(async () => (await new Asker(runner).ask('{"do":"touch"}\n')) === '{"ok":true}\n');
  });

  test('with connections that never say anything lets turns and the session end', async () => {
    await using other = await RunnerHarness.bound({ agent });
    const askers = Array.from({ length: 10 }, () => new Asker(other));
    assert.equal((await other.runTurn('echo on')).output, 'on\n');
    other.send('shutdown', { graceMs: 1000 });
    assert.equal((await other.exited).code, 0);
    for (const asker of askers) asker.socket.destroy();
  });

  test('gives a running turn the last of many results that race, whole', async () => {
    const race = 'for i in 1 2 3 4 5 6 7 8; do berth-agent result "[$i,$i]" & done; wait';
    const { outcome, output } = await runner.runTurn(race);
    assert.equal(outcome, 'Succeeded');
    const [a, b] = output as number[];
    assert.ok(a === b && [1, 2, 3, 4, 5, 6, 7, 8].includes(a as number), JSON.stringify(output));
  });

  test('gives no result to a turn whose process has failed, and none after its end', async () => {
    const give = `berth-agent result '"given"'`;
    assert.deepEqual([(await runner.runTurn(`${give}; exit 3`)).error?.code], ['AgentFailed']);
    const late = `until [ -e give ]; do sleep 0.02; done; ${give}; echo $? > refused`;
    assert.equal((await runner.runTurn(`(${late}) >/dev/null 2>&1 & echo first`)).output, 'first\n');
    const file = (name: string) => join(runner.directory('work'), name);
    writeFileSync(file('give'), '');
    await eventually(() => existsSync(file('refused')) && readFileSync(file('refused'), 'utf8') === '3\n');
    assert.equal((await runner.runTurn('echo second')).output, 'second\n');
  });

  test('takes events by the ten thousand in bounded memory, and the turn ends', async () => {
    const before = memory(runner);
    const turn = runner.startTurn('sleep 600');
    await runner.frame('started', (frame) => frame.message.turn === turn);
    const asker = new Asker(runner);
    const line = `${JSON.stringify({ do: 'event', event: { pad: 'x'.repeat(1000) } })}\n`;
    asker.socket.write(line.repeat(10_000));
    await eventually(() => asker.text.split('\n').length > 10_000, { what: '10,000 replies' });
    asker.socket.destroy();
    runner.send('cancel', { turn, outcome: 'Cancelled' });
    assert.equal((await runner.result(turn)).outcome, 'Cancelled');
    assert.ok(memory(runner) - before < 100 * MB, `${memory(runner) / MB} MB`);
  });

  test('makes one question at a time known, however many are asked and given up', async () => {
    const turn = runner.startTurn('sleep 600');
    await runner.frame('started', (frame) => frame.message.turn === turn);
    const askers = Array.from({ length: 40 }, () => new Asker(runner));
    for (const [i, asker] of askers.entries()) asker.socket.write(`{"do":"approve","prompt":"${i}?"}\n`);
    await runner.frame('approval', (frame) => frame.message.turn === turn);
    const other = new Asker(runner);
    for (let i = 0; i < 20; i++) assert.equal(await other.ask('{"do":"touch"}\n'), '{"ok":true}\n');
    for (const asker of [...askers, other]) asker.socket.destroy();
    runner.send('cancel', { turn, outcome: 'Cancelled' });
    assert.equal((await runner.result(turn)).outcome, 'Cancelled');
    assert.ok(runner.frames('approval').length <= 2, `${runner.frames('approval').length} questions`);
  });

  test('taken away by its agent ends what asks there, and the turn goes on', async () => {
    const { output } = await runner.runTurn(
      'rm $BERTH_SOCKET; mkfifo $BERTH_SOCKET; timeout 1 berth-agent touch || echo refused; rm $BERTH_SOCKET',
    );
    assert.match(output as string, /refused/);
    assert.equal((await runner.runTurn('echo on')).output, 'on\n');
  });
});
