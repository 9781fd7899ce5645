import { randomSuffix } from '../../core/generated-name.ts';
import { canonicalJson } from '../../core/json.ts';
import { ifThere, isOtherUID, isRefusal } from '../../core/kube/errors.ts';
import { configMaps } from '../../core/kube/resources.ts';
import { type StoredSession, sessionOwner, sessions } from '../../core/resources/kinds.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { replaced } from '../cluster/replaced.ts';
import { finishedMessage, getSession } from '../cluster/stored.ts';
import { withKubernetes } from '../connect/connect.ts';
import { variablesFrom } from '../create/agent.ts';
import { checkAllowed } from '../create/allowed.ts';
import { type Change, changedFields } from '../create/changed-spec.ts';
import { ensureEnvironment, getEnvironment, readRequirements } from '../create/environments.ts';
import { environmentOf, type SessionFlags } from '../create/session-spec.ts';
import { CliError, refused } from '../errors.ts';
import { filesOf, filesSource, isFilesSource, packFiles } from '../files/agent-files.ts';
import { formatObject, nameOf } from '../print/print.ts';
import { type RestartFlags, untilRestarted } from './restart.ts';

const CHANGES = [
  'with',
  'requirements',
  'environment',
  'env',
  'envFromSecret',
  'cpu',
  'memory',
  'idle',
] as const satisfies (keyof SessionFlags)[];

export interface UpdateFlags
  extends ClusterFlags,
    Omit<RestartFlags, 'output'>,
    Pick<SessionFlags, (typeof CHANGES)[number] | 'withAll' | 'python'> {
  restart?: boolean;
  output?: 'json' | 'yaml' | 'name';
}

/** Tries of a write that others come before. The controller writes the status of a busy session some times a second. */
const MAX_TRIES = 10;
/** Time to delete files that no session names, milliseconds. */
const REMOVE_MS = 5_000;

/** Variables, files and packages of an update, read from its flags before anything is asked of the cluster. */
interface Given {
  env: Change['env'];
  archive: Buffer | undefined;
  requirements: string[] | undefined;
}

/** Changes the settings of a session. With `--restart` its pod is replaced then, as by `restart`. */
export async function update(name: string, flags: UpdateFlags, cli: Cli): Promise<number> {
  const given = await readFlags(name, flags, cli);
  return withKubernetes('update', flags, cli, async (cluster) => {
    const { session: asked, isChanged } = await write(name, given, flags, cluster, cli);
    if (flags.output === 'json' || flags.output === 'yaml') await cli.out(await formatObject(asked, flags.output));
    else if (flags.output === 'name') await cli.out(`${nameOf(asked)}\n`);
    else await cli.out(`session.berth.dev/${name} ${isChanged ? 'updated' : 'unchanged'}\n`);
    const tell = (outcome: string) => {
      const line = `session.berth.dev/${name} ${outcome}`;
      return flags.output ? cli.say(line) : cli.out(`${line}\n`);
    };
    if (flags.restart) await untilRestarted(asked, flags, cluster, cli, tell);
    else if (isChanged) sayWhen(asked, flags, cli);
    return 0;
  });
}

async function readFlags(name: string, flags: UpdateFlags, cli: Cli): Promise<Given> {
  if (CHANGES.every((flag) => flags[flag] === undefined)) {
    const instead = flags.restart ? `; to restart it alone: ${cli.name} restart ${name}` : '';
    throw refused(`nothing is to be changed; give --with, --requirements, --env or another setting${instead}`);
  }
  if (!flags.restart && (!flags.wait || flags.timeout !== undefined)) {
    const flag = flags.wait ? '--timeout' : '--no-wait';
    throw refused(`${flag} is about the wait for --restart; add --restart, or leave ${flag} out`);
  }
  if (flags.environment !== undefined && flags.requirements !== undefined) {
    throw refused('--environment and --requirements name two environments; leave one of them out');
  }
  if (flags.python !== undefined && flags.requirements === undefined) {
    throw refused('--python says for which Python --requirements are; give both, or neither');
  }
  return {
    env: variablesFrom(flags, cli),
    requirements: flags.requirements === undefined ? undefined : await readRequirements(flags.requirements, cli),
    archive: flags.with && (await packFiles(flags.with, { cwd: cli.cwd, all: flags.withAll === true })),
  };
}

/** Writes the change, with all that it needs. After a refusal nothing is left of it. */
async function write(
  name: string,
  given: Given,
  flags: UpdateFlags,
  cluster: KubeCluster,
  cli: Cli,
): Promise<{ session: StoredSession; isChanged: boolean }> {
  const { api } = cluster;
  const signal = cli.interrupted;
  if (flags.environment !== undefined) await getEnvironment(cluster, flags.environment, signal);
  const before = await getSession(cluster, name, signal);
  refuseEnded(before, cli);
  const environment = given.requirements && environmentOf(before.spec, given.requirements, flags.python);
  const files = given.archive && filesSource(name, randomSuffix(cli.random, 8));
  const change = { ...flags, env: given.env, files, environment: environment?.name ?? flags.environment };
  await checkAllowed({ ...before.spec, ...changedFields(name, before.spec, change) }, cluster, cli);
  if (environment) await ensureEnvironment(environment, cluster, cli);
  // The session never names files that are not there.
  const stored = given.archive && files && filesOf(given.archive, before, files);
  if (stored) await api.create(configMaps, stored, { signal });
  try {
    const written = await writeSpec(before, change, flags.restart === true, cluster, cli);
    await removeEarlier(written.before, written.session, cluster, cli);
    if (files) sayWhere(written.before, cli);
    return { session: written.session, isChanged: written.isChanged };
  } catch (error) {
    // Where no answer came the session may have been written. Its files stay then, and are deleted with it.
    if (stored && (isRefusal(error) || error instanceof CliError)) {
      await ifThere(api.delete(configMaps, stored.metadata, { deadlineMs: REMOVE_MS })).catch(() => {});
    }
    throw error;
  }
}

/**
 * Writes the spec. Lists are merged with what the session has: the write is of the version that was read, and begins anew where
 * another came before it. `before`: the version that it changed.
 */
async function writeSpec(
  read: StoredSession,
  change: Change,
  restart: boolean,
  cluster: KubeCluster,
  cli: Cli,
): Promise<{ before: StoredSession; session: StoredSession; isChanged: boolean }> {
  const { api, namespace } = cluster;
  const { name, uid } = read.metadata;
  const signal = cli.interrupted;
  const request = restart ? { restartRequest: randomSuffix(cli.random, 12) } : {};
  let before = read;
  for (let tries = 1; ; tries++) {
    const fields = changedFields(name, before.spec, change);
    const isChanged = canonicalJson({ ...before.spec, ...fields }) !== canonicalJson(before.spec);
    if (!isChanged && !restart) return { before, session: before, isChanged };
    const { resourceVersion } = before.metadata;
    const patch = { metadata: { uid, resourceVersion }, spec: { ...fields, ...request } };
    try {
      const session = await api.patch(sessions, { namespace, name }, patch, { signal });
      return { before, session, isChanged };
    } catch (error) {
      if (!isOtherUID(error) || tries === MAX_TRIES) throw error;
      before = await getSession(cluster, name, signal);
      if (before.metadata.uid !== uid) throw replaced(name);
      refuseEnded(before, cli);
    }
  }
}

function refuseEnded({ metadata, status }: StoredSession, cli: Cli): void {
  if (metadata.deletionTimestamp) throw refused(`session ${metadata.name} is being deleted`);
  if (status?.phase === 'Finished') throw refused(finishedMessage(metadata.name, cli));
}

/** Deletes the files of an earlier `--with` that the session no longer names. They would go with the session, so an error is only told. */
async function removeEarlier(
  before: StoredSession,
  { spec }: StoredSession,
  { api, namespace }: KubeCluster,
  cli: Cli,
): Promise<void> {
  const { name: session, uid } = before.metadata;
  const named = new Set(spec.agent?.files?.map(({ configMap }) => configMap));
  for (const source of before.spec.agent?.files ?? []) {
    const { configMap: name } = source;
    if (name === undefined || named.has(name) || !isFilesSource(source, session)) continue;
    try {
      const found = await ifThere(api.get(configMaps, { namespace, name }, { signal: cli.interrupted }));
      if (!found || sessionOwner(found.metadata)?.uid !== uid) continue;
      await ifThere(api.delete(configMaps, { namespace, name }, { uid: found.metadata.uid, signal: cli.interrupted }));
    } catch {
      cli.say(`ConfigMap ${name} with the earlier files is left; it is deleted with the session`);
    }
  }
}

/** Says where the files are if a directory of its own keeps the session's program from them. */
function sayWhere({ metadata: { name }, spec: { agent } }: StoredSession, cli: Cli): void {
  if (agent?.workingDir === undefined || agent.files?.some((source) => isFilesSource(source, name))) return;
  cli.say(`the files are in BERTH_AGENT_DIR; the working directory stays ${agent.workingDir} (spec.agent.workingDir)`);
}

/** Says from when on the change counts. A time of idleness counts at once. */
function sayWhen({ metadata: { name }, status }: StoredSession, flags: UpdateFlags, cli: Cli): void {
  if (CHANGES.every((flag) => flag === 'idle' || flags[flag] === undefined)) return;
  if (status?.podName === undefined) cli.say('its next turn starts a pod with these settings');
  else cli.say(`its pod keeps the settings that it started with; for a new one: ${cli.name} restart ${name}`);
}
