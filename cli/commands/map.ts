import { createHash } from 'node:crypto';
import { defined } from '../../core/defined.ts';
import { ifThere, isAlreadyExists } from '../../core/kube/errors.ts';
import { eachPage } from '../../core/kube/pages.ts';
import { configMaps } from '../../core/kube/resources.ts';
import { type StoredTurn, sessionOwner, sessions, turns } from '../../core/resources/kinds.ts';
import { LABEL_MAP } from '../../core/resources/names.ts';
import { isNoInput } from '../../core/resources/needed-input.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { outputOf } from '../cluster/stored.ts';
import { withKubernetes } from '../connect/connect.ts';
import { ensureEnvironment } from '../create/environments.ts';
import { type SessionFlags, sessionSpec } from '../create/session-spec.ts';
import { detached, EXIT, OutputLost, refused } from '../errors.ts';
import { packFiles, sharedFiles } from '../files/agent-files.ts';
import { begin, type SharedSettings, type Task } from '../map/begin.ts';
import { readItems } from '../map/items.ts';
import { MAX_MAP_NAME, mapName, sessionNames } from '../map/names.ts';
import { runAll } from '../map/pool.ts';
import { Progress } from '../map/progress.ts';
import { endOfTurn } from '../wait/wait.ts';

export interface MapFlags extends ClusterFlags, SessionFlags {
  max: number;
  name?: string;
  timeout?: string;
  attempts?: number;
  unordered?: boolean;
  retryFailed?: boolean;
}

/** Size of a page of turns that are read. */
const PAGE = 250;
/** Time to delete a session that has not ended, milliseconds. */
const DELETE_MS = 10_000;

type Shared = SharedSettings & { flags: MapFlags };

/**
 * Runs a session of one turn for each line of a file, at most `--max` at the same time, and prints the results as JSON lines.
 * The names of the sessions depend on settings and input alone, so that the same command goes on where it was stopped.
 */
export async function map(file: string, words: string[], flags: MapFlags, cli: Cli): Promise<number> {
  if (flags.name !== undefined && flags.name.length > MAX_MAP_NAME) {
    throw refused(`--name has ${flags.name.length} characters; the name of a map has at most ${MAX_MAP_NAME}`);
  }
  if (file === '-' && flags.requirements === '-') {
    throw refused('stdin can be read once only, and FILE and --requirements read it; name a file in one of them');
  }
  const items = await readItems(file, cli, { asText: flags.inputAs === 'text' });
  const archive = flags.with && (await packFiles(flags.with, { cwd: cli.cwd, all: flags.withAll === true }));
  return withKubernetes('map', flags, cli, async (cluster) => {
    const files = archive && `${flags.name ?? 'map'}-${createHash('sha256').update(archive).digest('hex').slice(0, 8)}`;
    // Of all inputs, one that is missing is the one that an agent may not be able to take.
    const first = items.find(({ input }) => isNoInput(input)) ?? items[0];
    const asked = { input: first?.input, timeout: flags.timeout };
    const wanted = await sessionSpec(files ?? 'map', words, flags, { turns: 'One' }, cluster, cli, first && asked);
    const settings = [wanted.spec, flags.timeout ?? null, flags.attempts ?? null];
    const name = flags.name ?? mapName(settings);
    const names = sessionNames(name, settings, items);
    const tasks = items.map((item, index): Task => ({ ...item, name: names[index] as string }));
    if (wanted.environment) await ensureEnvironment(wanted.environment, cluster, cli);
    if (archive && files) await createShared(archive, files, name, cluster, cli);
    return runTasks(tasks, { spec: wanted.spec, map: name, flags }, cluster, cli);
  });
}

async function runTasks(tasks: Task[], shared: Shared, cluster: KubeCluster, cli: Cli): Promise<number> {
  const { map, flags } = shared;
  const known = await turnsOfMap(map, cluster, cli);
  const progress = new Progress(map, tasks.length, cli);
  /** Sessions whose turns have not ended, by name. */
  const live = new Map<string, string>();
  const run = async (task: Task, signal: AbortSignal) => {
    const before = known.get(task.name);
    known.delete(task.name);
    if (before && isTerminal(before.status?.phase) && !(flags.retryFailed && before.status?.phase !== 'Succeeded')) {
      return { task, turn: before };
    }
    progress.begin();
    const inner = { ...cli, interrupted: signal };
    const begun =
      before && !isTerminal(before.status?.phase)
        ? { turn: before, uid: sessionOwner(before.metadata)?.uid ?? '' }
        : await begin(task, before, shared, cluster, inner);
    live.set(task.name, begun.uid);
    const turn = await endOfTurn(begun.turn, cluster, cli, signal);
    live.delete(task.name);
    progress.end();
    return { task, turn };
  };
  const take = async ({ task, turn }: { task: Task; turn: StoredTurn }) => {
    const { phase, error } = turn.status ?? {};
    const output = await outputOf(turn, cluster.api, cli.interrupted);
    const result = {
      line: task.line,
      session: task.name,
      phase,
      ...defined({ output }),
      ...(error === undefined ? {} : { error: { code: error.code, message: error.message } }),
    };
    progress.clear();
    await cli.out(`${JSON.stringify(result)}\n`);
    progress.count(phase === 'Succeeded');
  };
  const options = { max: flags.max, isOrdered: flags.unordered !== true, signal: cli.interrupted };
  try {
    await runAll(tasks, options, run, take);
  } catch (error) {
    const isLeft = detached(cli.interrupted);
    if (cli.interrupted.aborted && !isLeft) await stop(live, cluster, cli);
    progress.finish();
    if (isLeft) cli.say(`sessions that still run go on (${live.size}), and the same command waits for them`);
    cli.say('the same command goes on with the rest');
    if (error instanceof OutputLost && progress.failed > 0) return EXIT.failed;
    throw error;
  }
  progress.finish();
  if (progress.failed > 0) cli.say('to run those that failed once more, add --retry-failed');
  return progress.failed > 0 ? EXIT.failed : EXIT.ok;
}

/** Returns the turns of earlier calls, by their names. */
async function turnsOfMap(map: string, { api, namespace }: KubeCluster, cli: Cli): Promise<Map<string, StoredTurn>> {
  const found = new Map<string, StoredTurn>();
  const options = { namespace, labelSelector: `${LABEL_MAP}=${map}`, limit: PAGE, signal: cli.interrupted };
  await eachPage(api, turns, options, ({ items }) => {
    for (const turn of items) found.set(turn.metadata.name, turn);
  });
  return found;
}

/** Stores the files that all sessions of the map share. */
async function createShared(
  archive: Buffer,
  name: string,
  map: string,
  { api, namespace }: KubeCluster,
  cli: Cli,
): Promise<void> {
  const wanted = sharedFiles(archive, { name, namespace, labels: { [LABEL_MAP]: map } });
  try {
    await api.create(configMaps, wanted, { signal: cli.interrupted });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const { binaryData } = await api.get(configMaps, wanted.metadata, { signal: cli.interrupted });
    if (JSON.stringify(binaryData) !== JSON.stringify(wanted.binaryData)) {
      throw refused(`ConfigMap ${wanted.metadata.name} has the name of these files and holds others; delete it`);
    }
  }
}

/** Deletes sessions that have not ended, so that the next call begins them anew. */
async function stop(live: Map<string, string>, { api, namespace }: KubeCluster, cli: Cli): Promise<void> {
  const remove = async ([name, uid]: [string, string]) => {
    const options = { ...(uid ? { uid } : {}), deadlineMs: DELETE_MS };
    await ifThere(api.delete(sessions, { namespace, name }, options)).catch(() =>
      cli.say(`session ${name} goes on; the same command waits for it`),
    );
  };
  await Promise.all([...live].map(remove));
}
