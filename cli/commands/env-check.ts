import { defined } from '../../core/defined.ts';
import { digestsOf, packageName } from '../../core/environments/requirements.ts';
import { randomSuffix } from '../../core/generated-name.ts';
import { type StoredEnvironment, type StoredTurn, sessions } from '../../core/resources/kinds.ts';
import { firstTurnName } from '../../core/resources/names.ts';
import type { SessionSpec } from '../../core/resources/session.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { outputOf } from '../cluster/stored.ts';
import { withKubernetes } from '../connect/connect.ts';
import { checkAllowed } from '../create/allowed.ts';
import { createSession, createTurn } from '../create/create.ts';
import { getEnvironment } from '../create/environments.ts';
import { EXIT, failed } from '../errors.ts';
import { hanging } from '../print/printable.ts';
import { waitForTurn } from '../wait/wait.ts';

/** Time to delete the session of a check, milliseconds. */
const DELETE_MS = 5_000;

/** Python program that prints its interpreter's facts and packages. */
const PROGRAM = `
import importlib.metadata, json, platform, sys
inside = [path for path in sys.path if path.startswith(sys.prefix)]
found = [[one.metadata["Name"], one.version] for one in importlib.metadata.distributions(path=inside)]
print(json.dumps({"python": platform.python_version(), "isolated": sys.prefix != sys.base_prefix, "packages": found}))
`;

interface Found {
  python: string;
  /** True for the interpreter of an environment; false for the image's. */
  isolated: boolean;
  packages: [name: string, version: string][];
}

/**
 * Starts the interpreter of an Environment in a session of its own, which has it built where it is not yet, and compares
 * what it finds with what the Environment records. Prints each difference; returns 1 where there is one.
 */
export async function checkEnvironment(name: string, flags: ClusterFlags, cli: Cli): Promise<number> {
  return withKubernetes('env check', flags, cli, async (cluster) => {
    const { spec } = await getEnvironment(cluster, name, cli.interrupted);
    const found = await ask(name, spec, cluster, cli);
    const differences = compared(await getEnvironment(cluster, name, cli.interrupted), found);
    for (const difference of differences) cli.say(`environment ${name}: ${difference}`);
    if (differences.length > 0) return EXIT.failed;
    const count = found.packages.length === 1 ? '1 package' : `${found.packages.length} packages`;
    await cli.out(`environment.berth.dev/${name} checked: Python ${found.python}, ${count}\n`);
    return EXIT.ok;
  });
}

/** Runs the program in a session that is deleted afterwards. */
async function ask(
  environment: string,
  { class: sessionClass, image }: StoredEnvironment['spec'],
  cluster: KubeCluster,
  cli: Cli,
): Promise<Found> {
  const name = `check-${randomSuffix(cli.random, 8)}`;
  const spec: SessionSpec = {
    class: sessionClass,
    agent: { command: ['python3', '-I', '-c', PROGRAM], result: 'Json' },
    environment: { name: environment },
    turns: 'One',
    suspend: false,
    ...defined({ image }),
  };
  await checkAllowed(spec, cluster, cli);
  const { uid, turn } = await createSession({ name, spec }, cluster, cli, async (session) => ({
    uid: session.metadata.uid,
    turn: await createTurn({ name: firstTurnName(name), spec: {} }, session, cluster, cli),
  }));
  try {
    const ended = await waitForTurn(turn, cluster, cli, { signal: cli.interrupted });
    return await foundBy(ended, environment, cluster, cli);
  } finally {
    await remove(name, uid, cluster, cli);
  }
}

async function foundBy(turn: StoredTurn, environment: string, { api }: KubeCluster, cli: Cli): Promise<Found> {
  const { phase, error } = turn.status ?? {};
  if (phase !== 'Succeeded')
    throw failed(`environment ${environment}: ${error?.code}: ${hanging(error?.message ?? '')}`);
  return (await outputOf(turn, api, cli.interrupted)) as Found;
}

async function remove(name: string, uid: string, { api, namespace }: KubeCluster, cli: Cli): Promise<void> {
  await api.delete(sessions, { namespace, name }, { uid, deadlineMs: DELETE_MS }).catch(() => {
    cli.say(`session ${name} of the check is left; remove it with: ${cli.name} delete ${name}`);
  });
}

/** Differences between an Environment and what its interpreter finds. */
export function compared({ spec, status = {} }: Pick<StoredEnvironment, 'spec' | 'status'>, found: Found): string[] {
  const differences: string[] = [];
  if (!found.isolated) differences.push('the program was given the Python of the image and not the environment’s');
  const { python } = spec;
  if (python !== undefined && !`${found.python}.`.startsWith(`${python}.`))
    differences.push(`Python is ${found.python}, asked for was ${python}`);
  const versions = new Map(found.packages.map(([name, version]) => [packageName(name), version]));
  const given = digestsOf(spec.requirements);
  for (const { name, version, hashes = [] } of status.packages ?? []) {
    const there = versions.get(packageName(name));
    if (there !== version) differences.push(`${name} is ${there ?? 'missing'}, recorded is ${version}`);
    const digests = given.get(packageName(name));
    const other = digests && hashes.find((hash) => !digests.has(hash));
    if (other)
      differences.push(
        `${name} was installed by the digest ${other}, which its requirement does not name; create the Environment anew`,
      );
  }
  for (const requirement of spec.requirements) {
    // A marker may leave the package out.
    if (!requirement.includes(';') && !versions.has(packageName(requirement)))
      differences.push(`nothing is installed for the requirement ${requirement}`);
  }
  return differences;
}
