/**
 * The whole benchmark: `make bench`, which sets KUBECONFIG and installs the chart. Prints Markdown; build/bench.json has
 * every sample.
 */
import { cold } from './cold.ts';
import { commands } from './commands.ts';
import { Ground } from './ground.ts';
import { injectionFigure } from './injection.ts';
import { leaderChange } from './leader-change.ts';
import { load } from './load.ts';
import { peer } from './peer/peer.ts';
import { pythonOnKind } from './python-kind.ts';
import { idleTurns, readyTurns, writesOfLives, writesOfTurns } from './ready.ts';
import { Run } from './run.ts';
import { withoutKubernetes } from './runner.ts';

const run = new Run();
const ground = await Ground.prepare(`bench-${process.pid}`);
try {
  await run.section('cold', ['cold'], () => cold(ground));
  await run.section('ready turns', ['turn'], () => readyTurns(ground));
  await run.section('idle turns', ['turn-idle'], () => idleTurns(ground));
  await run.section('writes of turns', ['writes-turn'], () => writesOfTurns(ground));
  await run.section('writes of lives', ['writes-life'], () => writesOfLives(ground));
  await run.section('load', ['throughput', 'controller-memory', 'runner-memory'], () => load(ground));
  await run.section('commands', ['cli-list', 'cli-turn'], () => commands(ground));
  await run.section('leader', ['leader-one', 'leader-two'], () => leaderChange(ground));
  await run.section('injection', [], async () => ({ figures: [await injectionFigure(ground.cluster)] }));
  await run.section('python on kind', [], async () => ({ figures: await pythonOnKind(ground.namespace) }));
  await run.section('agent-sandbox', [], () => peer(ground));
} finally {
  await ground.remove();
}
await withoutKubernetes(run);
run.publish('bench', true);
