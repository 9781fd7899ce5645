import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { listPage } from '../../../../api/answers/list-page.ts';
import { apiConfig } from '../../../../api/config.ts';
import { Limits } from '../../../../api/limits/limits.ts';
import { Memory } from '../../../../api/limits/memory.ts';
import { ApiMetrics } from '../../../../api/metrics.ts';
import { Problem } from '../../../../api/problems/problems.ts';
import { parseConfig } from '../../../../core/program/config.ts';
import { turns } from '../../../../core/resources/kinds.ts';
import { MAX_ARTIFACT_BYTES, MAX_OUTPUT_BYTES, MiB } from '../../../../core/resources/limits.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const limitsWith = (env: Record<string, string> = {}) =>
  new Limits({ clock: new VirtualClock(), config: parseConfig(apiConfig, env), metrics: new ApiMetrics() });
const codeOf = (fn: () => void) => {
  try {
    fn();
    return 'held';
  } catch (error) {
    assert.ok(error instanceof Problem && (error.retryAfterSeconds ?? 0) >= 1, String(error));
    return `${error.status} ${error.code}`;
  }
};

describe('memory', () => {
  test('a caller holds its share, all callers together no more than there is, and a refusal holds nothing', () => {
    const memory = new Memory({ max: 100, sharePercent: 25, least: 10 });
    const [a, b] = [memory.open('a'), memory.open('a')];
    assert.deepEqual([a.resize(20), b.resize(6), b.resize(5)], [undefined, 'caller', undefined]);
    const others = ['b', 'c', 'd'].map((caller) => memory.open(caller).resize(25));
    assert.deepEqual([others, memory.used], [[undefined, undefined, undefined], 100]);
    assert.equal(memory.open('e').resize(1), 'all');
    a.free();
    a.free();
    assert.equal(a.resize(50), undefined);
    assert.equal(memory.used, 80);
    assert.equal(b.resize(1), undefined);
    assert.equal(memory.used, 76);
  });
  test('however small the share, one caller can have the largest content, and all bytes are given back', () => {
    const limits = limitsWith({ BERTH_API_MAX_BYTES: '16Mi', BERTH_API_CALLER_SHARE: '1' });
    const one = limits.memory('a');
    assert.equal(
      codeOf(() => one.hold(MAX_ARTIFACT_BYTES)),
      'held',
    );
    assert.equal(
      codeOf(() => limits.memory('a').hold(1)),
      '429 CallerLimit',
    );
    assert.equal(
      codeOf(() => limits.memory('b').hold(1)),
      '503 Overloaded',
    );
    one.free();
    assert.equal(
      codeOf(() => limits.memory('b').hold(MAX_ARTIFACT_BYTES)),
      'held',
    );
  });
  test('with the default limits one caller can download the largest artifact and an output at once', () => {
    const memory = limitsWith().memory('a');
    assert.equal(
      codeOf(() => memory.hold(MAX_ARTIFACT_BYTES + MAX_OUTPUT_BYTES)),
      'held',
    );
  });
  test('less than the largest artifact is refused as a setting', () => {
    assert.throws(() => limitsWith({ BERTH_API_MAX_BYTES: '15Mi' }), /BERTH_API_MAX_BYTES.*at least 16Mi/);
  });
});

describe('a page of a list', () => {
  const apiOf = (bytes: number, count: number) => {
    const asked: number[] = [];
    const api = {
      list: async (_: unknown, { limit = 0, continue: from = '0' }: { limit?: number; continue?: string }) => {
        asked.push(limit);
        const first = Number(from);
        const end = Math.min(count, first + limit);
        const items = Array.from({ length: end - first }, (_, i) => ({ name: first + i, text: 'x'.repeat(bytes) }));
        return { items, metadata: { resourceVersion: '1', ...(end < count ? { continue: String(end) } : {}) } };
      },
    };
    return { api: api as never, asked };
  };
  const memory = (bytes: number) =>
    limitsWith({ BERTH_API_MAX_BYTES: String(bytes), BERTH_API_CALLER_SHARE: '100' }).memory('a');
  const page = async (api: never, limit: number, of = memory(96 * MiB), from?: string) => {
    const { items, metadata } = await listPage(api, turns, { limit, continue: from }, { namespace: 'n', memory: of });
    return { count: items.length, next: metadata.continue };
  };

  test('of small objects is as long as its limit, with two requests', async () => {
    const { api, asked } = apiOf(100, 250);
    assert.deepEqual(await page(api, 100), { count: 100, next: '100' });
    assert.deepEqual(asked, [10, 90]);
    assert.deepEqual(await page(api, 100, undefined, '200'), { count: 50, next: undefined });
  });
  test('of large objects ends after some MiB, and the next goes on after it', async () => {
    const { api, asked } = apiOf(200_000, 100);
    const first = await page(api, 100);
    assert.ok(first.count >= 20 && first.count < 30 && first.next === String(first.count), JSON.stringify(first));
    assert.ok(
      asked.slice(1).every((limit) => limit <= 5),
      asked.join(),
    );
    assert.equal((await page(api, 100, undefined, first.next)).count, first.count);
  });
  test('ends where the memory of its caller does, with what it has', async () => {
    const of = memory(16 * MiB);
    of.hold(14 * MiB);
    assert.deepEqual(await page(apiOf(100_000, 100).api, 100, of), { count: 10, next: '10' });
  });
  test('is refused where its caller has no memory for its beginning', async () => {
    const of = memory(16 * MiB);
    of.hold(16 * MiB);
    await assert.rejects(page(apiOf(1, 1).api, 100, of), { code: 'CallerLimit' });
  });
});
