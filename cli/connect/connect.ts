import { setFlagsFromString } from 'node:v8';
import { EMBEDDED_VERSION_SUFFIX, embeddedIsRunning, embeddedKubeconfig, homeFolder } from '../../core/embedded.ts';
import { KubeClient } from '../../core/kube/client.ts';
import { type ConnectionOptions, loadConnection } from '../../core/kube/config.ts';
import { ApiError } from '../../core/kube/errors.ts';
import type { AnswerTime } from '../../core/kube/server-clock.ts';
import { MAX_REQUESTER } from '../../core/resources/limits.ts';
import { silentLogger } from '../../core/system.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster, KubeCluster } from '../cluster/cluster.ts';
import { Outages } from '../cluster/outages.ts';
import { chosenServer, needsKubeconfig } from '../server/chosen.ts';
import { kubernetesBackend } from './kubernetes-backend.ts';

/** Name of the context in the embedded cluster's kubeconfig. */
const EMBEDDED_CONTEXT = 'berth-local';

/**
 * Selects the kubeconfig, in this order: `--kubeconfig`; `KUBECONFIG`; the embedded cluster's while it runs, unless
 * `--context` names another; a pod's service account; `~/.kube/config`.
 */
export function connectionOptions(flags: ClusterFlags, env: NodeJS.ProcessEnv): ConnectionOptions {
  const context = flags.context === undefined ? {} : { context: flags.context };
  if (flags.kubeconfig !== undefined) return { ...context, env, path: flags.kubeconfig };
  const home = homeFolder(env);
  const meant = flags.context === undefined || flags.context === EMBEDDED_CONTEXT;
  if (!env.KUBECONFIG && meant && embeddedIsRunning(home)) return { ...context, env, path: embeddedKubeconfig(home) };
  return { ...context, env };
}

/** Time within which a reachable server answers a first request, milliseconds; kubectl gives a connection as long. */
const FIRST_ANSWER_MS = 30_000;
/** Options of the first request of a command: where no server answers, the client's retries would only delay the error. */
export const FIRST_REQUEST = { retry: false, deadlineMs: FIRST_ANSWER_MS } as const;

export interface ClusterUse {
  /** True where the command's own first request is made with `FIRST_REQUEST`, so that none need precede it. */
  asksFirst?: boolean;
}

/**
 * Keeps V8 from optimizing WebAssembly. undici's parser of HTTP is WebAssembly, and the answers of two requests are enough
 * for V8 to optimize it in the background. The end of the process would wait for these 150 ms of CPU. Called before the first
 * connection and after Node's own modules are loaded, whose code cache is for the flags of the start.
 */
function keepWasmAsItIs(): void {
  setFlagsFromString(`--wasm-tiering-budget=${2 ** 31 - 1}`);
}

/**
 * Calls `use` with the choice of the flags: the server of the HTTP API, or the cluster of a kubeconfig. Rejects where it does
 * not answer.
 */
export async function withCluster<R>(
  flags: ClusterFlags,
  cli: Cli,
  use: (cluster: Cluster) => Promise<R>,
  how: ClusterUse = {},
): Promise<R> {
  const chosen = chosenServer(flags, cli);
  if (!chosen) return withKubeconfig(flags, cli, use, how);
  keepWasmAsItIs();
  const { withServer } = await import('../server/with-server.ts');
  return withServer(chosen, flags, cli, use);
}

/**
 * Calls `use` with the cluster of a kubeconfig, for commands that need more than the HTTP API has; `command` is refused where
 * the flags or the environment choose a server.
 */
export async function withKubernetes<R>(
  command: string,
  flags: ClusterFlags,
  cli: Cli,
  use: (cluster: KubeCluster) => Promise<R>,
  how: ClusterUse = {},
): Promise<R> {
  const chosen = chosenServer(flags, cli);
  if (chosen) throw needsKubeconfig(command, chosen.from);
  return withKubeconfig(flags, cli, use, how);
}

async function withKubeconfig<R>(
  flags: ClusterFlags,
  cli: Cli,
  use: (cluster: KubeCluster) => Promise<R>,
  { asksFirst = false }: ClusterUse = {},
): Promise<R> {
  const connection = await loadConnection(connectionOptions(flags, cli.env));
  keepWasmAsItIs();
  using outages = new Outages('cluster', cli);
  let answer: AnswerTime | undefined;
  const api = new KubeClient({
    connection,
    clock: cli.clock,
    random: cli.random,
    log: silentLogger,
    userAgent: 'berth-cli',
    onAnswer: (time) => {
      answer = time;
    },
    onRequest: (verb, code, error) => outages.note(error instanceof Error ? error : Number(code), verb),
  });
  try {
    let isLocal: Promise<boolean> | undefined;
    const embedded = () => {
      isLocal ??= isEmbedded(api, cli.interrupted);
      return isLocal;
    };
    if (!asksFirst) await embedded();
    let known: Promise<{ requester?: string }> | undefined;
    const author = () => {
      known ??= whoAmI(api, cli.interrupted);
      return known;
    };
    const backend = kubernetesBackend(() => cluster, api, cli);
    const namespace = flags.namespace ?? connection.namespace;
    const cluster = { ...backend, api, embedded, author, namespace, outages, answered: () => answer };
    return await use(cluster);
  } finally {
    await api.close();
  }
}

/** Path of the review that says who the caller is; Kubernetes allows it to every authenticated user by default. */
const SELF_REVIEW = '/apis/authentication.k8s.io/v1/selfsubjectreviews';

/**
 * Returns the name by which the cluster knows the caller. A cluster that does not serve the review, or refuses it, does
 * not keep the caller from working.
 */
async function whoAmI(api: KubeClient, signal: AbortSignal): Promise<{ requester?: string }> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  try {
    const review = await api.raw('POST', SELF_REVIEW, { body, readOnly: true, signal });
    const name = (review as { status?: { userInfo?: { username?: string } } }).status?.userInfo?.username ?? '';
    return name !== '' && [...name].length <= MAX_REQUESTER ? { requester: name } : {};
  } catch (error) {
    if (error instanceof ApiError && error.code < 500 && error.code !== 429) return {};
    throw error;
  }
}

/**
 * Reports whether the cluster is embedded. Also finds out, without the client's retries, whether the server answers at
 * all.
 */
async function isEmbedded(api: KubeClient, signal: AbortSignal): Promise<boolean> {
  try {
    const version = (await api.raw('GET', '/version', { ...FIRST_REQUEST, signal })) as { gitVersion?: string };
    return version.gitVersion?.endsWith(EMBEDDED_VERSION_SUFFIX) ?? false;
  } catch (error) {
    // A caller without the right to read the version can still have rights on sessions.
    if (error instanceof ApiError) return false;
    throw error;
  }
}
