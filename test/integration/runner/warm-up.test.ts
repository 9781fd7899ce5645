import assert from 'node:assert/strict';
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { ContainedRunner, noContainer, stagedCommand, stageImage } from '../../support/contained-runner.ts';
import { eventually } from '../../support/eventually.ts';
import { exists } from '../../support/processes.ts';
import { skipIf } from '../../support/requires.ts';
import { noKeeper, RunnerHarness } from '../../support/runner-harness.ts';
import { warmedUp } from '../../support/warmed-up.ts';

/** Everything that an agent can see of its runner and of what was there before it, with a state and a log of its own. */
const LOOK = `
  runner=$(awk '/^PPid/ { print $2 }' /proc/$PPID/status)
  echo children: $(cat /proc/$runner/task/*/children | wc -w)
  env | sort
  cd "$BERTH_STATE_DIR/.." && find . | sort
  echo kept > "$BERTH_STATE_DIR/kept"; touch -d @1000000000 "$BERTH_STATE_DIR/kept"
  echo some log >&2`;
const LOOKING = { agent: { args: [LOOK], result: 'Text' as const, env: [{ name: 'NAME', value: 'value' }] } };

const childrenOf = (pid: number) =>
  readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean),
  );
/** Folders that a runner makes at its start. */
const FOLDERS = ['run', 'state', 'tmp', 'work'];
const files = (runner: RunnerHarness) => (readdirSync(runner.root, { recursive: true }) as string[]).sort();

/** Binds the runner and runs its first turn; what differs from one runner to the next is left out. */
async function firstTurn(runner: RunnerHarness) {
  runner.bind();
  const { turn, startedAt, finishedAt, usage, state, ...rest } = await runner.runTurn();
  const own = new RegExp([runner.root, runner.session.uid].join('|'), 'g');
  const { cpuSeconds, peakMemoryBytes, processes } = usage ?? {};
  return {
    result: { ...rest, output: String(rest.output).replace(own, 'OWN') },
    digest: state === 'Unchanged' ? state : state.digest,
    kinds: runner.events.flatMap((event) => (event.type === 'frame' ? [`${event.frame.seq} ${event.frame.kind}`] : [])),
    stderr: runner.stderr.replace(own, 'OWN'),
    measured: [typeof cpuSeconds, typeof peakMemoryBytes, typeof processes],
    peakMemoryBytes,
  };
}

describe('a runner that waits for its session', skipIf(noKeeper), () => {
  let image = '';
  /** Replaces the program of the warm-up. It can write to the image. */
  const warmsUp = (script: string) => {
    writeFileSync(join(image, 'bin/berth-agent'), `#!/bin/bash\n${script}\n`);
    chmodSync(join(image, 'bin/berth-agent'), 0o755);
  };
  const start = (options = {}) => new RunnerHarness({ command: stagedCommand(image), ...options });
  beforeAll(async () => {
    image = await stageImage();
  });
  afterAll(() => rmSync(image, { recursive: true, force: true }));

  test('warms up, and leaves no process, no file and no output', async () => {
    await using runner = start();
    // A request for `ready` is two lines, and each is answered.
    const asked = async (answers: number) => {
      await runner.ready();
      await eventually(() => runner.readies.length === answers, { what: `${answers} frames \`ready\`` });
      return runner.stdout;
    };
    const said = await asked(2);
    await warmedUp(runner);
    await eventually(() => childrenOf(runner.pid).length === 0, { what: 'no process of the warm-up' });
    assert.deepEqual(files(runner), FOLDERS);
    assert.equal(await asked(4), said + said, 'the same two frames, and nothing between them');
    assert.deepEqual([runner.readies[3]?.session, runner.stderr], [undefined, '']);
  });

  test('runs its first turn as one that has not warmed up', async () => {
    const options = { ...LOOKING, env: { BERTH_LOCAL_MEMORY: '2000000000' } };
    await using fresh = start(options);
    await fresh.ready();
    const expected = await firstTurn(fresh);
    await using runner = start(options);
    await runner.ready();
    await warmedUp(runner);
    const { peakMemoryBytes = 0, ...turn } = await firstTurn(runner);
    const { peakMemoryBytes: peak = 0, ...others } = expected;
    assert.match(turn.result.output, /^children: 1\n/);
    assert.deepEqual(turn, others);
    // The figure depends on when the keeper looks: a shell and a tool take some MB, a runner more than this.
    assert.ok(peakMemoryBytes < 30e6 && peak < 30e6, `${peakMemoryBytes} and ${peak} bytes`);
  });

  test('warms up as PID 1 of a container, too', skipIf(noContainer), async () => {
    const own = await stageImage();
    try {
      await using runner = new ContainedRunner(own, LOOKING);
      await runner.ready();
      await warmedUp(runner);
      await eventually(() => runner.others().length === 0, { what: 'no process of the warm-up' });
      const { result, stderr } = await firstTurn(runner);
      assert.deepEqual([result.outcome, stderr], ['Succeeded', 'some log\n']);
    } finally {
      rmSync(own, { recursive: true, force: true });
    }
  });

  test('is not harmed by a warm-up that fails and leaves what it can', async () => {
    warmsUp(`echo words; echo more >&2; touch left "$HOME/left" "$BERTH_STATE_DIR/left"
      setsid sleep 1000 & echo $! > '${image}/pid'; exit 3`);
    await using runner = start();
    await runner.ready();
    await warmedUp(runner);
    assert.equal(exists(Number(readFileSync(join(image, 'pid'), 'utf8'))), false);
    assert.deepEqual([files(runner), runner.stderr], [FOLDERS, '']);
    runner.bind();
    assert.equal((await runner.runTurn()).error?.code, 'MissingEnvelope');
  });

  /** Waits until the warm-up of the runner hangs, and returns the pid of its program. */
  async function hanging(runner: RunnerHarness): Promise<number> {
    await runner.ready();
    return eventually(() => Number(readFileSync(join(image, 'pid'), 'utf8')), { what: 'the program of the warm-up' });
  }
  const hang = (script: string) => {
    rmSync(join(image, 'pid'), { force: true });
    warmsUp(`echo $$ > '${image}/pid'; ${script}`);
  };

  test('is bound during the warm-up, of which nothing is left when its turn starts', async () => {
    // A keeper that is stopped takes seconds to be gone.
    hang('while :; do kill -STOP $PPID; sleep 0.01; done');
    const look = `kill -0 $(cat '${image}/pid') 2>/dev/null && echo alive; ls "$BERTH_STATE_DIR/../run"`;
    await using runner = start({ agent: { args: [look], result: 'Text' } });
    await hanging(runner);
    runner.bind();
    const { outcome, output } = await runner.runTurn();
    assert.deepEqual([outcome, output, runner.stderr], ['Succeeded', 'berth.sock\ncmd.sock\n', '']);
  });

  test('ends by a signal during the warm-up as at any other time', async () => {
    hang('exec sleep 1000');
    await using runner = start();
    const program = await hanging(runner);
    runner.child.kill('SIGTERM');
    assert.deepEqual(await runner.exited, { code: 143, signal: null });
    await eventually(() => !exists(program), { what: 'the end of the warm-up’s program' });
  });
});
