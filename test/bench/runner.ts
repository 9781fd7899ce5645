/**
 * Benchmarks that need no Kubernetes: `make bench-runner`. Prints Markdown; build/bench-runner.json has every sample.
 */
import { rmSync } from 'node:fs';
import { stagedCommand, stageImage } from '../support/contained-runner.ts';
import { artifacts } from './artifacts.ts';
import { budgets } from './budgets.ts';
import { cliStarts } from './cli-start.ts';
import { clients } from './clients.ts';
import { corpora } from './corpora.ts';
import { demo } from './demo.ts';
import { drivers } from './drivers.ts';
import { embedded } from './embedded.ts';
import { enterEmbedded } from './enter.ts';
import { enterIdle } from './enter-idle.ts';
import { firstAnswer } from './first-answer.ts';
import { firstTurns } from './first-turn.ts';
import { holds } from './hold.ts';
import { besideHostilePods } from './hostile.ts';
import { http } from './http.ts';
import { logShare } from './log-share.ts';
import { output } from './output.ts';
import { python } from './python.ts';
import { restores } from './restore.ts';
import { Run } from './run.ts';
import { snapshots } from './snapshot.ts';
import { starts } from './start.ts';
import { stream } from './stream.ts';

/** All of it, one after the other, so that nothing weighs on anything else. */
export async function withoutKubernetes(run: Run): Promise<void> {
  const image = await stageImage();
  try {
    const command = stagedCommand(image);
    await run.section('runner: start', ['runner-start'], () => starts(command));
    await run.section('runner: drivers', ['server'], () => drivers(command));
    await run.section('runner: first turn', [], async () => ({ figures: await firstTurns(image) }));
    await run.section('runner: snapshot', ['snapshot'], () => snapshots(command));
    await run.section('runner: hold', [], async () => ({ figures: await holds() }));
    await run.section('controller: limits', [], async () => ({ figures: await budgets() }));
    await run.section('runner: restore', [], restores);
    await run.section('cli: start', ['cli-list-embedded', 'cli-turn-embedded'], cliStarts);
    await run.section('first answer', [], async () => ({ figures: await firstAnswer() }));
    await run.section('embedded cluster', [], async () => ({ figures: await embedded() }));
    const inside = [
      ...(['command-embedded', 'command-output-embedded', 'command-input-embedded'] as const),
      ...(['files-out-embedded', 'files-in-embedded'] as const),
    ];
    await run.section('enter: embedded cluster', inside, enterEmbedded);
    await run.section('enter: idle runner', [], async () => ({ figures: await enterIdle(command) }));
    await run.section('hostile pods', ['hostile'], besideHostilePods);
    await run.section('artifacts', [], async () => ({ figures: await artifacts() }));
    await run.section('http', [], async () => ({ figures: await http() }));
    await run.section('clients', [], async () => ({ figures: await clients() }));
    await run.section('stream', [], async () => ({ figures: await stream() }));
    await run.section('python', ['environment-build', 'environment-unpack'], python);
    await run.section('runner: output', [], async () => ({ figures: await output(command) }));
    await run.section('runner: log', [], async () => ({ figures: await logShare(command) }));
    await run.section('corpora', [], async () => ({ figures: await corpora() }));
    await run.section('demo', ['demo'], demo);
  } finally {
    rmSync(image, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const run = new Run();
  await withoutKubernetes(run);
  run.publish('bench-runner', false);
}
