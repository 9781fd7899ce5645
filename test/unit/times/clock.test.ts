import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'vitest';

const CLOCK = new URL('../../times/clock.ts', import.meta.url).href;

/** What `endOfFile` returns at the end of a script in a process of its own. */
function after(script: string): { cpuMs: number; waits: { what: string; ms: number }[] } {
  const text = `
import { execFileSync } from 'node:child_process';
import { countWait, endOfFile } from '${CLOCK}';
const burn = 'const end = process.cpuUsage().user + 300_000; while (process.cpuUsage().user < end);';
${script}
console.log(JSON.stringify(endOfFile()));`;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', text];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
}

test('the CPU of a file is that of its worker and of the programs that it started and that have ended', () => {
  const { cpuMs: own } = after('endOfFile(); eval(burn);');
  assert.ok(own >= 290, `${own} ms`);
  const { cpuMs: ofChild } = after(`endOfFile(); execFileSync(process.execPath, ['-e', burn]);`);
  assert.ok(ofChild >= 290, `${ofChild} ms`);
});

test('a file begins at nothing: what an earlier one used and waited for is not its own', () => {
  const { cpuMs, waits } = after(`eval(burn); countWait('a pod', 5); endOfFile();`);
  assert.ok(cpuMs < 290, `${cpuMs} ms`);
  assert.deepEqual(waits, []);
});

test('the longest waits are told, those for one kind of thing as one', () => {
  const { waits } = after(`
for (const [what, ms] of [['pod s-566b-2 is gone', 30], ['pod s-9a1c-1 is gone', 20], ['ready', 40], ['x', 2], ['y', 1]]) countWait(what, ms);`);
  assert.deepEqual(waits, [
    { what: 'pod … is gone', ms: 50 },
    { what: 'ready', ms: 40 },
    { what: 'x', ms: 2 },
  ]);
});
