import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { unpackContents } from '../../../core/artifacts/packed.ts';
import type { FrameOf } from '../../../core/frames/messages.ts';
import { unpackDirectory } from '../../../runner/state/unpack.ts';
import { skipIf, skipWithout } from '../../support/requires.ts';
import { noKeeper, RunnerHarness } from '../../support/runner-harness.ts';

/** Number of suspensions and of lost pods, each. */
const TIMES = Number(process.env.BERTH_MOMENTS ?? 3);

function hasSqlite(): boolean {
  try {
    execFileSync('python3', ['-c', 'import sqlite3']);
    return true;
  } catch {
    return false;
  }
}
const unmet = noKeeper || skipWithout('python', hasSqlite(), 'there is no python3 with sqlite3');

/** Writes as fast as it can to a database of some megabytes, each time the same number into rows all over both tables. */
const WRITER = `
import os, random, sqlite3, sys
db = sqlite3.connect("d.db", isolation_level=None)
db.execute(f"pragma journal_mode={sys.argv[1]}")
db.execute("pragma synchronous=off")
db.execute("create table a (id integer primary key, n integer, filler text)")
db.execute("create table b (id integer primary key, n integer, filler text)")
db.execute("create index by_n on a (n)")
for t in "ab":
    db.execute("begin")
    db.executemany(f"insert into {t} values (?, 0, ?)", ((i, "x" * 500) for i in range(4000)))
    db.execute("commit")
n = 0
while True:
    n += 1
    db.execute("begin immediate")
    for id in random.sample(range(4000), 50):
        for t in "ab": db.execute(f"update {t} set n = ?, filler = ? where id = ?", (n, str(n % 10) * 500, id))
    db.execute("commit")
    if n == 20: open("ready", "w")
`;

const CHECK = `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1] + "/d.db")
found = db.execute("pragma integrity_check").fetchall()
different = db.execute("select count(*) from a join b using (id) where a.n <> b.n").fetchone()[0]
rows = [db.execute(f"select count(*) from {t}").fetchone()[0] for t in "ab"]
print(found[0][0], different, *rows)
`;

/** The first turn leaves the writer behind; each waits until it is at work. */
const AGENT = (mode: string) => `
cd "$BERTH_STATE_DIR"
[ -f d.db ] || setsid python3 -c '${WRITER}' ${mode} </dev/null >/dev/null 2>&1 &
until [ -f "$BERTH_STATE_DIR/ready" ]; do sleep 0.02; done`;

describe('the state of a session that left a writer running', skipIf(unmet), () => {
  let root: string;
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'berth-moment-'));
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  /** What the restored database says of itself. */
  async function restored(runner: RunnerHarness, state: FrameOf<'state'>): Promise<string> {
    const to = mkdtempSync(join(root, 's-'));
    await unpackDirectory(to, runner.openState(state), state.message.digest);
    try {
      return execFileSync('python3', ['-c', CHECK, to], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
    } catch (error) {
      return (
        String((error as { stderr: string }).stderr)
          .trim()
          .split('\n')
          .at(-1) ?? ''
      );
    } finally {
      rmSync(to, { recursive: true, force: true });
    }
  }

  for (const mode of ['delete', 'wal']) {
    test(`is of one moment at a turn’s end and at a suspension: SQLite opens it whole in journal mode ${mode}`, async () => {
      await using runner = await RunnerHarness.bound({ agent: { result: 'Text', args: [AGENT(mode)] } });
      const found: string[] = [];
      for (let i = 0; i < TIMES; i++) {
        const { outcome, leftRunning } = await runner.runTurn();
        assert.deepEqual([outcome, i > 0 || leftRunning.length > 0], ['Succeeded', true]);
        const end = runner.frames('state').at(-1);
        assert.ok(end);
        found.push(await restored(runner, end));
        runner.send('suspend', {});
        runner.send('snapshot', {});
        const suspension = await runner.frame('state', ({ seq }) => seq > end.seq);
        found.push(await restored(runner, suspension));
        assert.notEqual(suspension.message.digest, end.message.digest, 'it writes on');
        runner.send('resume', {});
      }
      assert.deepEqual(new Set(found), new Set(['ok 0 4000 4000']));
      assert.equal(found.length, 2 * TIMES);
    });
  }

  test('is of one moment at a question, and of the same moment as the artifacts at the turn’s end', async () => {
    // Each number is written by a rename, in this order: an earlier one is ahead of a later one by one at most.
    const files = '"$BERTH_STATE_DIR/b" "$BERTH_OUTPUT_DIR/b" "$BERTH_OUTPUT_DIR/a" "$BERTH_STATE_DIR/a"';
    const args = [
      `head -c 20000000 /dev/zero >"$BERTH_STATE_DIR/aa"
      (i=0; while :; do i=$((i + 1)); for f in ${files}; do echo $i >$f.n; mv $f.n $f; done; done) </dev/null >/dev/null 2>&1 &
      until [ -f "$BERTH_STATE_DIR/a" ]; do :; done; berth-agent approve 'May I?' >/dev/null`,
    ];
    await using runner = await RunnerHarness.bound({
      agent: { result: 'Text', args },
      bind: { artifacts: { maxBytes: 1e6, maxFiles: 10 } },
    });
    const turn = runner.startTurn();
    const request = await runner.frame('approval');
    const asked = await numbers();
    assert.ok(isOneMoment(asked), `${asked}`);
    const { seq, message } = request;
    runner.send('ack', { through: seq });
    runner.send('approval', {
      ...{ turn, name: 'turn-1', index: 1, attempt: 1, input: null, timeoutMs: 60_000, ranMs: message.ranMs },
      approval: { requestId: message.id, decision: 'Approve' as const },
    });
    await runner.result(turn);
    const [b = 0, a = 0] = await numbers();
    const [artifacts] = runner.frames('artifacts');
    assert.ok(artifacts);
    const { files: kept } = artifacts.message;
    const content = await unpackContents(kept, artifacts.binary);
    const number = (name: string) => {
      const index = kept.findIndex((file) => file.name === name);
      const start = kept.slice(0, index).reduce((sum, { bytes }) => sum + bytes, 0);
      return Number(content?.toString('latin1', start, start + (kept[index]?.bytes ?? 0)));
    };
    const ended = [b, number('b'), number('a'), a];
    assert.ok(isOneMoment(ended), `${ended}`);
    assert.ok(b > (asked[0] ?? 0), 'it wrote on');

    /** The numbers in the last state. */
    async function numbers(): Promise<number[]> {
      const state = runner.frames('state').at(-1);
      assert.ok(state);
      const to = mkdtempSync(join(root, 'q-'));
      await unpackDirectory(to, runner.openState(state), state.message.digest);
      return ['b', 'a'].map((name) => Number(readFileSync(join(to, name), 'utf8')));
    }
  });
});

/** Numbers in the order in which they are written: all of one round, or the first ones of the next. */
function isOneMoment(numbers: number[]): boolean {
  const [first = 0] = numbers;
  const last = numbers.at(-1) ?? 0;
  return first - last <= 1 && numbers.every((number, i) => i === 0 || number <= (numbers[i - 1] ?? 0));
}
