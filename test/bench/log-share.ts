import { once } from 'node:events';
import { join } from 'node:path';
import type { AgentSpec } from '../../core/frames/messages.ts';
import { RunnerHarness } from '../support/runner-harness.ts';
import type { Figure } from './figures.ts';
import { resultOf } from './result.ts';

const SOURCE = join(import.meta.dirname, '..', '..', 'core', 'resources', '*.ts');
const EVENT = JSON.stringify({ type: 'step', text: 'Reads a file and says what it does next. '.repeat(4) });
const jsonLines = { resultWhen: { '/type': 'result' }, output: '/output' };

const CASES: readonly { what: string; agent: Partial<AgentSpec> }[] = [
  { what: 'source code', agent: { result: 'Text', args: [`cat ${SOURCE} >&2; echo done`] } },
  {
    what: '1,000 events',
    agent: {
      result: 'JsonLines',
      jsonLines,
      args: [`yes '${EVENT}' | head -n 1000; echo '{"type":"result","output":"done"}'`],
    },
  },
];

/** Measures the bytes of frames that a turn adds to its container's log, beside the readable text there. */
export async function logShare(command: string[]): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const { what, agent } of CASES) {
    await using runner = await RunnerHarness.bound({ agent, command });
    let frames = 0;
    runner.child.stdout?.on('data', (chunk: Buffer) => {
      frames += chunk.length;
    });
    const { message } = await resultOf(runner, runner.startTurn());
    if (message.outcome !== 'Succeeded') throw new Error(JSON.stringify(message));
    runner.child.kill();
    await once(runner.child, 'close');
    const text = runner.stderrBytes;
    figures.push({
      what: `bytes of frames in the log of a turn that prints ${what}`,
      measured: `${frames}`,
      beside: `readable text: ${text}`,
      difference: `× ${(frames / text).toFixed(2)}`,
      values: { frames, text },
    });
  }
  return figures;
}
