import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { test } from 'vitest';
import { LEAKS } from '../../support/leaks.ts';
import { RunnerHarness } from '../../support/runner-harness.ts';

const SECRET = 'correct/horse battery+staple';

/** Every writing of it, byte by byte with a pause in the middle. */
const SCRIPT = `
import base64, os, sys, time, json, urllib.parse
v = os.environ['GIVEN'].encode()
said = [v, b'acme-123456']
said += [base64.b64encode(b'x' * n + v + b'y') for n in range(3)]
said += [base64.encodebytes(b'x' * n + v + b'y') for n in range(39, 57)]
said += [urllib.parse.quote(v, safe='').encode(), urllib.parse.quote_plus(v).encode()]
for text in said:
    for stream in (1, 2):
        for i in range(0, len(text), 5):
            os.write(stream, text[i:i + 5]); time.sleep(0.001)
        os.write(stream, b'\\n')
open(os.environ['BERTH_RESULT_FILE'], 'w').write(json.dumps({'status': os.environ['ENDS'], 'error': ' '.join(t.decode() for t in said), 'output': {t.decode(): [t.decode()] for t in said}}))
`;

for (const ends of ['success', 'error']) {
  test(`no writing of a secret, and nothing that the class’s patterns describe, shows in log, output or error: ${ends}`, async () => {
    await using runner = await RunnerHarness.bound({
      env: { BERTH_SECRET_0: SECRET },
      bind: { redact: ['acme-[0-9]{6}'] },
      agent: {
        command: ['python3', '-c'],
        args: [SCRIPT],
        env: [
          { name: 'GIVEN', secret: 'BERTH_SECRET_0' },
          { name: 'ENDS', value: ends },
        ],
      },
    });
    const result = await runner.runTurn();
    assert.equal(result.outcome, ends === 'success' ? 'Succeeded' : 'Failed', JSON.stringify(result.error));
    const { message } = await runner.frame('log');
    const shown = [runner.stderr, message.text, JSON.stringify(result.output), result.error?.message ?? ''];
    const core = Buffer.from(SECRET).toString('base64').slice(0, 20);
    for (const text of shown) {
      for (const hidden of [SECRET, 'horse', 'acme-1', '123456', core, 'battery%2B', 'correct%2F']) {
        assert.ok(!text.includes(hidden), `${hidden} in ${text}`);
      }
    }
    assert.ok(message.text.includes('[REDACTED]'));
    for (const before of ['x', 'xx']) {
      const encoded = Buffer.from(`${before}${SECRET}y`).toString('base64').slice(4, 24);
      for (const text of shown) assert.ok(!text.includes(encoded), text);
    }
    for (const before of ['', 'x', 'xx']) {
      // Line breaks may split the encoded text anywhere. Neither of its ends may be visible.
      const encoded = Buffer.from(`${before}${SECRET}y`).toString('base64').slice(4, 36);
      const letters = shown.map((text) => text.replaceAll(/\\n|\s/g, ''));
      for (const text of letters)
        for (const part of [encoded.slice(0, 8), encoded.slice(-8)]) assert.ok(!text.includes(part), text);
    }
  });
}

/** Lines of sealed data. Short strings occur in them by chance, and their content is checked in the opened frames. */
const SEALED = /(?<=^<<<BERTH_START [^\n]*\n)[A-Za-z0-9+/=]+$/gm;

/** All that left the runner: its readable text, every frame as its reader opens it, and the rest of the bytes as they were. */
function shown(runner: RunnerHarness): string {
  const frames = runner.events.flatMap((event) =>
    event.type === 'frame' ? [JSON.stringify(event.frame.message)] : [],
  );
  return [runner.stderr, runner.stdout.replaceAll(SEALED, ''), ...frames].join('\n');
}

/** No writing of it, nor half of one. */
function assertHidden(text: string): void {
  const base64 = [0, 1, 2].map((before) =>
    Buffer.from(`${'x'.repeat(before)}${SECRET}`)
      .toString('base64')
      .slice(4, 24),
  );
  for (const hidden of ['horse', 'battery', ...base64, '73570042'])
    assert.ok(!text.includes(hidden), `${hidden} in ${text}`);
}

test('no frame shows a secret: metadata, numbers, events, the names of what is left running, what the log says of odd files', async () => {
  const script = `
printf '%s' "$GIVEN" > "$BERTH_STATE_DIR/kept"
mkfifo "$BERTH_STATE_DIR/$PIN"
berth-agent event "{\\"said\\": \\"$GIVEN\\", \\"$GIVEN\\": $PIN}"
(exec -a "long $(printf '%0230d' 0) $GIVEN" sleep 300) >/dev/null 2>&1 &
until grep -q ^long /proc/$!/cmdline; do :; done
printf '{"status":"success","output":%s,"metadata":{"%s":["%s",%s]}}' $PIN "$GIVEN" "$GIVEN" $PIN > $BERTH_RESULT_FILE`;
  await using runner = await RunnerHarness.bound({
    env: { BERTH_SECRET_0: SECRET, BERTH_SECRET_1: '73570042' },
    agent: {
      args: [script],
      env: [
        { name: 'GIVEN', secret: 'BERTH_SECRET_0' },
        { name: 'PIN', secret: 'BERTH_SECRET_1' },
      ],
    },
  });
  const result = await runner.runTurn();
  assert.deepEqual([result.outcome, result.output], ['Succeeded', '[REDACTED]'], JSON.stringify(result.error));
  assert.deepEqual(result.metadata, { '[REDACTED]': ['[REDACTED]', '[REDACTED]'] });
  assert.match(result.leftRunning[0]?.command ?? '', /^long 0+ \[REDACTED\]?/);
  assert.deepEqual(runner.agentEvents()[0]?.event, { said: '[REDACTED]', '[REDACTED]': '[REDACTED]' });
  assert.match(runner.stderr, /not stored.*\[REDACTED\]/);
  assertHidden(shown(runner));
});

test('text on stderr that resembles a secret shows in no log and no error', async () => {
  const stderr = LEAKS.map(([line]) => line).join('\n');
  await using runner = await RunnerHarness.bound({
    agent: { input: 'Text', args: ['while IFS= read -rn 7 -d "" part; do printf %s "$part" >&2; done; exit 3'] },
  });
  const { error } = await runner.runTurn(stderr);
  const log = (await runner.frame('log')).message.text;
  assert.equal(log.split('\n').length, LEAKS.length);
  for (const text of [log, error?.message ?? '', runner.stderr]) {
    for (const [, secret] of LEAKS) assert.ok(!text.includes(secret), `${secret} in ${text}`);
  }
});

test('the state keeps what the agent wrote, secrets too, and leaves the runner sealed', async () => {
  await using runner = await RunnerHarness.bound({
    env: { BERTH_SECRET_0: SECRET },
    agent: {
      args: ['printf "%s" "$GIVEN" > "$BERTH_STATE_DIR/$(printf %s "$GIVEN" | base64 | tr / _)"'],
      result: 'Text',
      env: [{ name: 'GIVEN', secret: 'BERTH_SECRET_0' }],
    },
  });
  await runner.runTurn();
  const [state] = runner.frames('state');
  assert.ok(state);
  assertHidden([shown(runner), state.binary.toString('latin1')].join('\n'));
  assert.ok(zstdDecompressSync(runner.openState(state)).includes(SECRET));
});

test('a question, and an error that quotes what the agent said, show no secret', async () => {
  const question = '{"status":"approval","prompt":"use %s?","payload":{"key":"%s"}}';
  for (const [said, kind] of [
    [question, 'approval'],
    ['%s is no JSON', 'result'],
    ['{"status":"%s"}', 'result'],
  ] as const) {
    await using runner = await RunnerHarness.bound({
      env: { BERTH_SECRET_0: SECRET },
      agent: {
        args: [`printf '${said}' "$GIVEN" "$GIVEN" > $BERTH_RESULT_FILE`],
        env: [{ name: 'GIVEN', secret: 'BERTH_SECRET_0' }],
      },
    });
    runner.startTurn();
    await runner.frame(kind);
    assertHidden(shown(runner));
  }
});

test('a secret of many lines is known line by line, in the environment too: indented, with other ends of lines, in part', async () => {
  const lines = [
    '-----BEGIN PRIVATE KEY-----',
    'MIIEvQIBADANBgkqhkiG9w0B',
    'VJTUt9Us8cKjMzEfYYji',
    '-----END PRIVATE KEY-----',
  ];
  const script = `
(echo "$PEM" | sed 's/^/  /'; echo "$PEM" | sed 's/$/\\r/'; echo "$PEM" | sed -n 3p) >&2
echo "$PEM" | sed -n 1,2p`;
  await using runner = await RunnerHarness.bound({
    env: { BERTH_SECRET_0: `${lines.join('\n')}\n` },
    agent: { args: [script], result: 'Text', env: [{ name: 'PEM', secret: 'BERTH_SECRET_0' }] },
  });
  assert.equal((await runner.runTurn()).output, `${lines[0]}\n[REDACTED]\n`);
  await runner.frame('log');
  assert.equal(runner.stderr.split('[REDACTED]').length, 6, runner.stderr);
  for (const hidden of ['MIIE', 'VJTU']) assert.ok(!shown(runner).includes(hidden), shown(runner));
});

test('a secret file that is no text is known in base64 and hexadecimal', async () => {
  const key = Buffer.concat([Buffer.from([0xff, 0, 10, 0x80]), randomBytes(28)]);
  await using runner = new RunnerHarness({
    agent: {
      result: 'Text',
      secretFiles: [{ path: 'key' }],
      // Each encoding is on a line of its own: base64 may end with KEY=, which hides what follows.
      args: [
        'cd $BERTH_SECRETS_DIR; base64 -w 0 key; echo; (echo ab; cat key; echo) | base64 -w 0 >&2; base64 -w 0 key | tr +/ -_; echo; od -An -v -tx1 key | tr -d " \\n"',
      ],
    },
  });
  const folder = join(runner.root, 'berth-secrets');
  mkdirSync(folder);
  writeFileSync(join(folder, 'key'), key);
  await runner.ready();
  runner.bind();
  const { output } = await runner.runTurn();
  assert.match(String(output), /^\[REDACTED\].{0,2}\n\[REDACTED\].{0,2}\n\[REDACTED\]$/);
  await runner.frame('log');
  for (const at of [0, 1, 2]) {
    const inside = Buffer.concat([Buffer.alloc(at), key])
      .toString('base64')
      .slice(8, 24);
    for (const text of [inside, inside.replaceAll('+', '-').replaceAll('/', '_'), key.toString('hex', 8, 16)])
      assert.ok(!shown(runner).includes(text), text);
  }
});
