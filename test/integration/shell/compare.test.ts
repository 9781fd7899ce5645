import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { afterAll, describe, test } from 'vitest';
import { binFolder, judge, type Verdict } from './judge.ts';
import { generatedPairs, SEED, soupPairs, writtenPairs } from './pairs.ts';

const bin = binFolder();
afterAll(() => rmSync(bin, { recursive: true, force: true }));

function report(verdicts: Verdict[]): string {
  return verdicts
    .filter(({ differences }) => differences.length > 0)
    .map(({ pair, differences }) => `${pair.rewritten}\n\n${differences.join('\n')}`)
    .join(`\n${'='.repeat(100)}\n`);
}

describe('rewritten texts, run in bash', () => {
  test('written texts print, exit and leave files as the originals do', async (t) => {
    const { pairs, untouched } = writtenPairs(bin);
    const verdicts = await judge(pairs, bin);
    await t.annotate(`${pairs.length} written texts rewritten and compared, ${untouched} more untouched`);
    assert.equal(report(verdicts), '');
  });

  test('generated texts print, exit and leave files as the originals do, and $! is the last command’s own pid', async (t) => {
    const { pairs, untouched } = generatedPairs(bin);
    const verdicts = await judge(pairs, bin);
    const pids = verdicts.reduce((sum, { pidsKept }) => sum + pidsKept, 0);
    await t.annotate(
      `${pairs.length} generated texts rewritten and compared, ${untouched} more untouched, seed ${SEED}`,
    );
    await t.annotate(`${pids} times $! was the pid of the last command, a child of the shell itself`);
    assert.equal(report(verdicts), '');
    assert.ok(pids > 100, `only ${pids} pids were told`);
  });

  test('words in any order, as far as bash takes them, come to the same', async (t) => {
    const { pairs, untouched } = soupPairs(bin);
    const verdicts = await judge(pairs, bin, 'Unordered');
    await t.annotate(
      `${pairs.length} texts of random words rewritten and compared, ${untouched} more untouched, seed ${SEED}`,
    );
    assert.equal(report(verdicts), '');
  });

  test('the judge sees a waiting subshell, and an exec where none belongs', async () => {
    const wrong = [
      // The pid of the subshell: the text says that it is rewritten, and is not.
      'true && probe t & echo "t $! $BASHPID" >> "$BANGS"; wait # exec probe t',
      'true && exec probe a; echo lost',
      'exec probe t0 & wait',
      'true && exec echo builtin & wait',
      'true && exec probe a >log & wait',
    ];
    const right = 'true && probe t & echo "t $! $BASHPID" >> "$BANGS"; wait';
    const verdicts = await judge(
      wrong.map((rewritten) => ({ original: right, rewritten })),
      bin,
    );
    for (const { pair, differences } of verdicts) assert.notDeepEqual(differences, [], pair.rewritten);
  });
});
