import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { compareRuns, difference, relative } from '../../bench/compare.ts';
import type { Measured, Unmeasured } from '../../bench/judge.ts';
import type { BenchFile } from '../../bench/run.ts';
import { medianInterval } from '../../bench/statistics.ts';
import { TARGETS, type Target, type TargetId } from '../../bench/targets.ts';

const target = (id: TargetId) => TARGETS.find((each) => each.id === id) as Target;
/** 101 values around a middle, each the next by `step`. */
const around = (middle: number, step = 0.01) => Array.from({ length: 101 }, (_, i) => middle + (i - 50) * step);
const list = (own: number, get: number, step?: number): Measured => ({
  id: 'cli-list',
  values: around(own, step),
  floors: { 'kubectl get': around(get, step) },
});
const run = (...rows: (Measured | Unmeasured)[]): BenchFile => ({
  ...{ commit: 'abc', begun: '2026-01-01T00:00:00Z', short: false, rows, peer: 'no checkout', figures: [], floors: {} },
  machine: [{ section: 'cold', cpu: [100], fsync: [1] }],
});
const rowOf = (a: BenchFile, b: BenchFile) => compareRuns(a, b).split('\n').at(-1);

describe('two runs', () => {
  test('do not differ where figure and floor have changed alike', () => {
    const [a, b] = [list(150, 100), list(600, 400)].map((row) => relative(target('cli-list'), row));
    assert.equal(a?.value, b?.value);
    assert.match(rowOf(run(list(150, 100)), run(list(600, 400))) ?? '', /no difference beyond the spread \|$/);
  });

  test('differ where the ratio has changed by more than the medians are uncertain', () => {
    assert.match(rowOf(run(list(150, 100)), run(list(120, 100))) ?? '', /B is better: × 0\.80 \|$/);
    assert.match(rowOf(run(list(120, 100)), run(list(150, 100))) ?? '', /B is worse: × 1\.25 \|$/);
  });

  test('do not differ where the samples lie far apart', () => {
    assert.match(rowOf(run(list(150, 100, 5)), run(list(120, 100, 5))) ?? '', /no difference beyond the spread \|$/);
  });

  test('relate a figure to its floor from the least to the most that both medians allow', () => {
    const floors = { 'kubectl get': around(100, 2) };
    const { value, low, high } = relative(target('cli-list'), { ...list(150, 100), floors });
    const own = medianInterval(around(150));
    const floor = medianInterval(around(100, 2));
    assert.deepEqual([value, low, high], [1.5, own.low / floor.high, own.high / floor.low]);
    assert.ok(low < 1.3 && high > 1.8, `${low} to ${high}`);
  });

  test('are better by more where more is better', () => {
    const at = (value: number) => ({ figure: value, floor: 1, value, low: value - 1, high: value + 1 });
    assert.equal(difference(at(10), at(20), true), 'B is better: × 2.00');
    assert.equal(difference(at(10), at(20)), 'B is worse: × 2.00');
  });

  test('are compared in the row’s own unit where it has no floor', () => {
    const killed = (seconds: number): Measured => ({ id: 'leader-one', values: around(seconds) });
    assert.match(rowOf(run(killed(20)), run(killed(5))) ?? '', /20\.0 s \(n 101\) .* B is better: × 0\.25 \|$/);
  });

  test('are not judged where only one has the floor of the row: a ratio is no time', () => {
    const burst: Measured = { id: 'burst', values: around(900) };
    const beside: Measured = { ...burst, floors: { 'agent-sandbox': around(1500) } };
    assert.match(rowOf(run(burst), run(beside)) ?? '', /no verdict: only one has its floor \|$/);
    assert.match(rowOf(run(beside), run(burst)) ?? '', /no verdict: only one has its floor \|$/);
  });

  test('are not judged where either was not measured, and rows of neither are left out', () => {
    const text = compareRuns(run({ id: 'demo', why: 'failed: no npm' }), run(list(1, 1)));
    assert.match(text, /make demo.* \| failed: no npm \| left out \| – \|$/m);
    assert.equal(text.split('\n').filter((line) => line.startsWith('|')).length, 4);
    const failed: Unmeasured = { id: 'cli-list', why: 'failed: no kubectl' };
    assert.match(rowOf(run(failed), run(list(1, 1))) ?? '', /failed: no kubectl \| .* \| – \|$/);
    assert.match(rowOf(run(list(1, 1)), run(failed)) ?? '', /failed: no kubectl \| – \|$/);
  });

  test('tell their commits and the machine’s speed', () => {
    assert.match(compareRuns(run(), run()), /^A: commit abc, 2026-01-01T00:00:00Z; CPU loop 100 ms, fsync 1\.00 ms$/m);
  });
});
