import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { describeTurn } from '../../../cli/print/describe.ts';
import { secrets } from '../../../core/kube/resources.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { asked, decide } from '../approvals/support.ts';

const LONG = 'correct/horse battery+staple';
const SHORT = 'root';

describe('redaction on the embedded cluster', () => {
  const cluster = installed(ONE_LEADER, { controller: true });
  beforeAll(async () => {
    const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'db', namespace: 'default' } };
    const data = { user: SHORT, password: LONG, pin: '1234' };
    const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]);
    await cluster.client.create(secrets, { ...object, data: Object.fromEntries(encoded) });
  });

  const variable = (name: string, key: string) => ({ name, valueFrom: { secretKeyRef: { name: 'db', key } } });

  test('a Secret that is too short is named by key in a condition and an event, its value stays in outputs and leaves the log', async () => {
    const agent = {
      command: ['/bin/bash', '-c'],
      args: ['echo "/root belongs to $DB_USER" | tee /dev/stderr'],
      result: 'Text' as const,
      env: [variable('DB_USER', 'user'), variable('DB_PASSWORD', 'password')],
      secretFiles: [{ path: 'pin', secretKeyRef: { name: 'db', key: 'pin' } }],
    };
    await cluster.create('short', { agent });
    await cluster.turn('short', 'short-1', null);
    const { status } = await cluster.ended('short-1');
    assert.equal(status?.output, '/root belongs to root\n');
    assert.equal(status.redactions, undefined);
    assert.equal(status.log?.inline, '/[REDACTED] belongs to [REDACTED]\n');
    const told = (await cluster.event('short', 'SecretTooShort')) as { type: string; message: string };
    assert.equal(told.type, 'Warning');
    assert.match(told.message, /: key "user" of Secret "db", key "pin" of Secret "db"\. /);
    const { status: session } = await cluster.until('short', 'says so', ({ status }) =>
      Boolean(status?.conditions?.some(({ type }) => type === 'SecretsHidden')),
    );
    const condition = session?.conditions?.find(({ type }) => type === 'SecretsHidden');
    assert.deepEqual([condition?.status, condition?.reason], ['False', 'SecretTooShort']);
    for (const text of [told.message, condition?.message ?? '']) assert.doesNotMatch(text, /root|1234/);
  });

  test('redactions of a turn are counted over its events, questions and outputs, and over the processes that serve it', async () => {
    const script = `
berth-agent event "{\\"said\\": \\"$TOKEN, $TOKEN\\"}"
if [ -z "$BERTH_APPROVAL" ]; then echo '{"status":"approval","prompt":"May '$TOKEN' pass?"}' | sed "s|'||g" > $BERTH_RESULT_FILE
else printf '{"status":"success","output":["key=lambda_of_x","%s"]}' "$TOKEN" > $BERTH_RESULT_FILE; fi`;
    const agent = { command: ['/bin/bash', '-c'], args: [script], env: [variable('TOKEN', 'password')] };
    await cluster.create('counts', { agent });
    await cluster.turn('counts', 'counts-1', null);
    const asks = await asked(cluster, 'counts-1');
    assert.equal(asks.status?.approval?.prompt, 'May [REDACTED] pass?');
    assert.equal(asks.status.redactions, 3);
    await decide(cluster, asks, { decision: 'Approve' });
    const ended = await cluster.ended('counts-1');
    assert.deepEqual(ended.status?.output, ['key=lambda_of_x', '[REDACTED]']);
    assert.equal(ended.status.redactions, 6);
    const text = describeTurn(ended, { output: '', log: '' }, Date.now());
    assert.match(text, /redactions +6 in output, metadata, events, questions and artifacts\n/);
    assert.ok(!(await cluster.session('counts')).status?.conditions?.some(({ type }) => type === 'SecretsHidden'));
  });

  const guess = 'api_key=0123456789';
  const hidden = 'api_key=[REDACTED]';
  for (const [heuristics, output, log, error] of [
    ['Errors', guess, guess, hidden],
    ['ErrorsAndLogs', guess, hidden, hidden],
    ['Everything', hidden, hidden, hidden],
    ['Off', guess, guess, guess],
  ] as const) {
    for (const runner of ['Embedded', 'None'] as const) {
      test(`heuristics ${heuristics} of the class holds with runner ${runner}`, async () => {
        const name = `${heuristics}-${runner}`.toLowerCase();
        await cluster.createClass(name, {
          runner,
          ...(runner === 'None' ? { image: 'berth.local/machine' } : {}),
          redaction: { heuristics },
          overrides: ['agent.command'],
        } as never);
        const [start, end] =
          runner === 'None'
            ? ['<<<BERTH_RESULT_START>>>', '<<<BERTH_RESULT_END>>>']
            : ['$BERTH_RESULT_START_MARKER', '$BERTH_RESULT_END_MARKER'];
        const script = `echo "${start}"; echo '{"status":"error","error":"no ${guess}","output":"${guess}"}'; echo "${end}"; echo ${guess} >&2`;
        await cluster.create(name, { class: name, agent: { command: ['/bin/bash', '-c', script] } } as never);
        await cluster.turn(name, `${name}-1`, null);
        const { status } = await cluster.ended(`${name}-1`);
        assert.deepEqual(
          [status?.output, status?.log?.inline?.trim(), status?.error?.message, status?.redactions],
          [output, log, `no ${error}`, output === hidden ? 1 : undefined],
        );
      });
    }
  }
});
