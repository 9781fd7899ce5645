import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { encodeJson, FrameDecoder } from '../../../core/enter/frames.ts';
import { ContainedRunner, noContainer, stageImage } from '../../support/contained-runner.ts';
import { HELPER } from '../../support/helper-run.ts';
import { skipIf } from '../../support/requires.ts';

/**
 * What a helper answers to this hello, started as by the kubelet: in the container's PID namespace its parent is no process, and it has the
 * agent's user, who cannot read its file. `sh` runs before it because setpriv itself can read any file.
 */
async function enter(runner: ContainedRunner, helper: string, hello: Buffer): Promise<string[]> {
  const user = [
    'setpriv',
    `--reuid=${runner.user}`,
    `--regid=${runner.user}`,
    '--clear-groups',
    '--inh-caps=-all',
    '--',
  ];
  const program = ['sh', '-c', 'exec "$0"', helper];
  const child = spawn('nsenter', ['-t', String(runner.outerPid), '-p', '--', ...user, ...program], {
    env: { PATH: process.env.PATH, BERTH_POD_UID: runner.podUID },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const decoder = new FrameDecoder();
  const frames: string[] = [];
  child.stdin?.write(hello);
  child.stdout?.on('data', (chunk: Buffer) => {
    for (const { kind, payload } of decoder.push(chunk)) frames.push(`${kind} ${payload}`);
  });
  await new Promise((resolve) => child.once('close', resolve));
  return frames;
}

describe('the way into a session', skipIf(noContainer), () => {
  let image: string;
  let helper: string;
  let runner: ContainedRunner;
  const hello = (incarnation = 1) =>
    encodeJson('hello', {
      protocol: 1,
      session: runner.session.uid,
      incarnation,
      want: 'read',
      root: 'work',
      path: 'a',
    });

  beforeAll(async () => {
    image = await stageImage();
    helper = join(image, 'bin', 'berth-enter');
    copyFileSync(HELPER, helper);
    chmodSync(helper, 0o711);
    runner = await ContainedRunner.bound({ image, agent: { result: 'Text', input: 'Args', args: ['$(INPUT)'] } });
    writeFileSync(join(runner.root, 'work', 'a'), 'content');
  });
  afterAll(async () => {
    await runner?.[Symbol.asyncDispose]();
    rmSync(image, { recursive: true });
  });

  test('is open to a process of the kubelet, which finds the runner as PID 1', async () => {
    const frames = await enter(runner, helper, hello());
    assert.deepEqual(
      frames.map((frame) => frame.split(' ')[0]),
      ['ready', 'data', 'end'],
    );
    assert.equal(frames[1], 'data content');
    assert.match((await enter(runner, helper, hello(2)))[0] ?? '', /^refused .*PodReplaced/);
  });

  test('is closed to the agent, also where it starts the helper itself', async () => {
    const own = join(runner.root, 'work', 'enter');
    copyFileSync(HELPER, own);
    chmodSync(own, 0o755);
    writeFileSync(join(runner.root, 'work', 'hello'), hello(), { mode: 0o644 });
    const script = `BERTH_POD_UID=${runner.podUID} ${own} < ${runner.root}/work/hello | tr -d '\\000'`;
    for (const started of [script, `setsid sh -c "(${script}) & wait"`]) {
      const { outcome, output } = await runner.runTurn(started);
      assert.equal(outcome, 'Succeeded');
      assert.match(String(output), /NotReady/);
      assert.doesNotMatch(String(output), /content/);
    }
  });
});
