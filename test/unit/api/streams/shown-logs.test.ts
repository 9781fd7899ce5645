import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { shownLogs } from '../../../../api/streams/shown-logs.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import type { KubeApi } from '../../../../core/kube/types.ts';

const ref = { namespace: 'default', name: 'pod' };
const refused = (code: number) => new ApiError({ code, reason: 'induced', message: 'induced' });
const annotated = (rules: unknown) => ({ 'berth.dev/redaction': JSON.stringify(rules) });
const NONE = { 'berth.dev/runner': 'None' };
const CUSTOMERS = { runner: 'None', redact: ['customer-\\d{6}'] };

interface Facts {
  pod?: { labels?: Record<string, string>; annotations?: Record<string, string> } | ApiError;
  class?: object;
  log: Buffer[];
}

async function shown({ pod = { labels: NONE }, class: spec, log }: Facts, timestamps = false): Promise<string> {
  const get = async ({ plural }: { plural: string }) => {
    if (plural === 'sessionclasses') {
      if (spec) return { spec };
      throw refused(404);
    }
    if (pod instanceof ApiError) throw pod;
    return { metadata: { ...ref, ...pod } };
  };
  const podLog: KubeApi['podLog'] = async function* () {
    yield* log;
  };
  const api = { get, podLog } as unknown as KubeApi;
  const pieces: Buffer[] = [];
  for await (const piece of shownLogs(api, { class: 'c' }).podLog(ref, { container: 'session', timestamps })) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

describe('the log of a pod as callers see it', () => {
  const text = 'customer-123456 ordered\ntoken=abcdef0123\nkey of é\n';
  const log = [Buffer.from(text)];

  test('is redacted by the rules that its pod was made with, where it has no runner', async () => {
    const made = { patterns: ['ordered'], heuristics: 'Errors' };
    const pod = { labels: NONE, annotations: annotated(made) };
    const left = text.replace('ordered', '[REDACTED]');
    assert.equal(await shown({ pod, class: CUSTOMERS, log }), left);
  });

  test('is redacted by the rules of the class where its pod has none', async () => {
    const hidden = '[REDACTED] ordered\ntoken=[REDACTED]\nkey of é\n';
    assert.equal(await shown({ class: CUSTOMERS, log }), hidden);
    const guessed = text.replace('abcdef0123', '[REDACTED]');
    assert.equal(await shown({ pod: { labels: NONE }, log }), guessed, 'the class is gone');
  });

  test('is as it was written where a runner has redacted it', async () => {
    assert.equal(await shown({ pod: {}, class: CUSTOMERS, log }), text);
  });

  test('is not read where its pod cannot be looked at', async () => {
    for (const code of [403, 503]) await assert.rejects(shown({ pod: refused(code), class: CUSTOMERS, log }), { code });
  });

  test('is redacted alike however it is cut, and keeps the time before each line', async () => {
    const stamp = '2030-01-01T00:00:00.123456789Z ';
    const lines = text.split('\n').slice(0, -1);
    const stamped = Buffer.from([...lines, 'customer-654321'].map((line) => stamp + line).join('\n'));
    const hidden = ['[REDACTED] ordered\n', 'token=[REDACTED]\n', 'key of é\n', '[REDACTED]'];
    const whole = hidden.map((line) => stamp + line).join('');
    const cuts = fc.array(fc.nat(stamped.length), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(cuts, async (places) => {
        const at = [0, ...places.sort((a, b) => a - b), stamped.length];
        const log = at.slice(1).map((end, i) => stamped.subarray(at[i], end));
        assert.equal(await shown({ class: CUSTOMERS, log }, true), whole);
      }),
    );
  });
});
