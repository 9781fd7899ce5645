/**
 * The whole benchmark: `make bench`, which sets KUBECONFIG and installs the chart. Prints Markdown; build/bench.json has
 * every sample.
 */
import { bursts } from './burst.ts';
import { cold } from './cold.ts';
import { coldKinds } from './cold-kinds.ts';
import { commands } from './commands.ts';
import { enter } from './enter.ts';
import { Ground } from './ground.ts';
import { leaderChange } from './leader-change.ts';
import { writesOfLives } from './lives.ts';
import { load } from './load.ts';
import { peer } from './peer/peer.ts';
import { podParts } from './pod-parts.ts';
import { pools } from './pools.ts';
import { pythonOnKind } from './python-kind.ts';
import { queue } from './queue.ts';
import { idleTurns, readyTurns, writesOfTurns } from './ready.ts';
import { type Outcome, Run } from './run.ts';
import { withoutKubernetes } from './runner.ts';
import { scale } from './scale.ts';
import { sustained } from './sustained.ts';
import type { TargetId } from './targets.ts';
import { wakes } from './wake.ts';

const run = new Run();
const ground = await Ground.prepare(`bench-${process.pid}`);

/** A section that needs the cluster. One that fails leaves no session or pool to weigh on the next. */
function section(name: string, ids: readonly TargetId[], work: () => Promise<Outcome>): Promise<void> {
  return run.section(name, ids, async () => {
    try {
      return await work();
    } catch (error) {
      await ground.clear();
      throw error;
    }
  });
}

try {
  await section('cold', ['cold'], () => cold(ground));
  await section('pools', ['warm', 'drained'], () => pools(ground));
  await section('pools: wake', ['wake'], () => wakes(ground));
  await section('pools: burst', ['burst'], () => bursts(ground));
  await section('pools: sustained', ['sustained'], () => sustained(ground));
  await section('ready turns', ['turn'], () => readyTurns(ground));
  await section('idle turns', ['turn-idle'], () => idleTurns(ground));
  await section('writes of turns', ['writes-turn'], () => writesOfTurns(ground));
  await section('writes of lives', ['writes-life'], () => writesOfLives(ground));
  await section('load', ['throughput', 'runner-memory'], () => load(ground));
  await section('scale', ['controller-memory'], () => scale(ground));
  await section('queue', [], async () => ({ figures: await queue(ground) }));
  await section('commands', ['cli-list', 'cli-turn'], () => commands(ground));
  const inside = ['command', 'command-output', 'command-input', 'files-out', 'files-in'] as const;
  await section('enter', inside, () => enter(ground));
  await section('leader', ['leader-one', 'leader-two'], () => leaderChange(ground));
  await section('cold kinds', [], async () => ({ figures: await coldKinds(ground) }));
  await section('pod parts', [], async () => ({ figures: await podParts(ground) }));
  await section('agent-sandbox', [], () => peer(ground));
  await section('python on kind', [], async () => ({ figures: await pythonOnKind(ground.namespace) }));
} finally {
  await ground.remove();
}
await withoutKubernetes(run);
run.publish('bench', true);
