import { ApiError } from '../../core/kube/errors.ts';
import { requireSupportedVersion, UnsupportedVersionError } from '../../core/kube/server-version.ts';
import { VERSION } from '../../core/program/version.ts';
import { sessions } from '../../core/resources/kinds.ts';
import type { Cli } from '../cli.ts';
import type { Cluster, KubeCluster } from '../cluster/cluster.ts';
import { clockFound, controllerFound, leaseFound, releaseFound } from './controller.ts';
import { error, type Finding, type Found, ok, Skipped, skipped, warning } from './finding.ts';
import { findInstalled, type Installed } from './installation.ts';
import { networkFound } from './network.ts';
import { classesFound, poolsFound, sessionsFound } from './objects.ts';
import { policiesFound } from './policies.ts';
import { rightsFound } from './rights.ts';
import { masterKeyFound, storeFound } from './store.ts';

/** A check: its name, and what it finds. It rejects with a Skipped where it cannot look. */
type Check = [name: string, look: () => Promise<Found[]>];

/** Checks an installation with the rights of the caller, through the Kubernetes API. */
export async function checkCluster(cluster: KubeCluster, cli: Cli): Promise<Finding[]> {
  const { api } = cluster;
  const { clock, interrupted: signal } = cli;
  const version = await carriedOut('cluster', () => versionFound(cluster, signal), cli);
  const answered = cluster.answered();
  const localTime = { now: clock.now(), monotonic: clock.monotonic() };
  const serverNow = () => {
    const { date, receivedAt } = cluster.answered() ?? {};
    const written = Date.parse(date ?? '');
    return Number.isNaN(written) ? clock.now() : written + clock.monotonic() - (receivedAt ?? 0);
  };
  let known: Promise<Installed[]> | undefined;
  const installed = () => {
    known ??= findInstalled(cluster, signal);
    return known;
  };
  const checks: Check[] = [
    ['clock', async () => [clockFound(answered, localTime)]],
    ['controller', async () => controllerFound(await installed())],
    ['release', async () => releaseFound(await installed())],
    ['lease', async () => leaseFound(await installed(), cluster, serverNow, signal)],
    ['crds', async () => (await import('./crds.ts')).crdsFound(await ifVisible(installed()), cluster, signal)],
    ['policies', async () => policiesFound(await installed(), cluster, signal)],
    ['network', () => networkFound(cluster, signal)],
    ['master-key', async () => masterKeyFound(await installed(), cluster, signal)],
    ['store', async () => storeFound(await installed(), cluster, signal)],
    ['rights', () => rightsFound(cluster, signal)],
    ['classes', () => classesFound(cluster, signal)],
    ['pools', () => poolsFound(cluster, signal)],
    ['sessions', () => sessionsFound({ api, namespace: cluster.namespace }, 'everywhere', serverNow(), signal)],
  ];
  const found = await Promise.all(checks.map(([name, look]) => carriedOut(name, look, cli)));
  return [version, ...found].flat();
}

/** Checks what can be seen through a server of the HTTP API. */
export async function checkServer(cluster: Cluster, cli: Cli): Promise<Finding[]> {
  const { api, namespace } = cluster;
  const signal = cli.interrupted;
  const server = async () => {
    const { api: release } = await cluster.versions(signal);
    if (release === VERSION) return [ok(`the HTTP API answers; it and this program are ${VERSION}`)];
    return [
      warning(
        `the HTTP API is ${release ?? 'of an unknown release'}, this program is ${VERSION}`,
        'use the command line of the same release',
      ),
    ];
  };
  const token = async () => {
    await api.list(sessions, { namespace, limit: 1, signal });
    return [ok(`the token is accepted, and may list sessions in namespace ${namespace}`)];
  };
  const checks: Check[] = [
    ['api', server],
    ['token', token],
    ['sessions', () => sessionsFound({ api, namespace }, 'here', cli.clock.now(), signal)],
    [
      'cluster',
      async () => [skipped('the rest of an installation is seen with a kubeconfig only: leave --server out')],
    ],
  ];
  return (await Promise.all(checks.map(([name, look]) => carriedOut(name, look, cli)))).flat();
}

async function versionFound({ api, embedded }: KubeCluster, signal: AbortSignal): Promise<Found[]> {
  try {
    const version = await requireSupportedVersion(api, signal);
    return [ok(`${(await embedded()) ? 'the embedded cluster' : 'the cluster'} answers: Kubernetes ${version}`)];
  } catch (problem) {
    if (!(problem instanceof UnsupportedVersionError)) throw problem;
    return [error(problem.message, 'upgrade Kubernetes (docs/install.md#a-cluster)')];
  }
}

/** Resolves with no installation where the caller may not see any. */
async function ifVisible(installed: Promise<Installed[]>): Promise<Installed[]> {
  try {
    return await installed;
  } catch (error) {
    if (error instanceof Skipped) return [];
    throw error;
  }
}

/** Carries a check out. What it could not find out because of the cluster is an error of that check alone. */
async function carriedOut(check: string, look: () => Promise<Found[]>, cli: Cli): Promise<Finding[]> {
  const named = (found: Found[]): Finding[] => found.map((each) => ({ check, ...each }));
  try {
    return named(await look());
  } catch (problem) {
    cli.interrupted.throwIfAborted();
    if (problem instanceof Skipped) return named([skipped(problem.message)]);
    if (problem instanceof ApiError && problem.code === 403) return named([skipped(problem.message)]);
    if (problem instanceof ApiError && problem.code === 404)
      return named([skipped('the cluster has no such resource')]);
    const { describeError } = await import('../errors.ts');
    const [message = ''] = describeError(problem, cli).message.split('\n');
    return named([error(message, 'try again; then look at what it names')]);
  }
}
