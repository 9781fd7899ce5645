import { randomSuffix } from '../../core/generated-name.ts';
import type { KubeClient } from '../../core/kube/client.ts';
import { isOtherUID } from '../../core/kube/errors.ts';
import { type StoredSession, sessions, turns } from '../../core/resources/kinds.ts';
import type { Cli } from '../cli.ts';
import type { Backend } from '../cluster/backend.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { replaced } from '../cluster/replaced.ts';

/** Backend on the Kubernetes API. Modules are imported when they are needed: each command needs few of them. */
export function kubernetesBackend(cluster: () => KubeCluster, api: KubeClient, cli: Cli): Backend {
  const ref = (name: string) => ({ namespace: cluster().namespace, name });
  /** Resolves as the change does. Rejects with NotFound where another object has the name by now. */
  const ofThis = async <T>(change: Promise<T>, name: string, kind: 'session' | 'turn'): Promise<T> => {
    try {
      return await change;
    } catch (error) {
      throw isOtherUID(error) ? replaced(name, kind) : error;
    }
  };
  const patch = ({ metadata: { namespace, name, uid } }: StoredSession, spec: object, signal: AbortSignal) =>
    ofThis(api.patch(sessions, { namespace, name }, { metadata: { uid }, spec }, { signal }), name, 'session');
  return {
    async createSession(session, turn, cli) {
      const { createSession, createTurn } = await import('../create/create.ts');
      return createSession(session, cluster(), cli, async (stored) => ({
        session: stored,
        ...(turn ? { turn: await createTurn(turn, stored, cluster(), cli) } : {}),
      }));
    },
    createTurn: async (turn, session, cli) =>
      (await import('../create/create.ts')).createTurn(turn, session, cluster(), cli),
    dryRun: async (objects, mode, cli) => (await import('../create/dry-run.ts')).dryRun(objects, mode, cluster(), cli),
    suspend: (session, hold, signal) =>
      patch(session, hold ? { suspend: true } : { suspendRequest: randomSuffix(cli.random, 12) }, signal),
    restart: (session, signal) => patch(session, { restartRequest: randomSuffix(cli.random, 12) }, signal),
    async resume(session, signal) {
      await patch(session, { suspend: false, suspendRequest: null }, signal);
    },
    deleteSession: ({ metadata: { name, uid } }, options) =>
      ofThis(api.delete(sessions, ref(name), { uid, ...options }), name, 'session'),
    async cancelTurn({ metadata: { namespace, name, uid } }, signal) {
      const change = api.patch(turns, { namespace, name }, { metadata: { uid }, spec: { cancel: true } }, { signal });
      await ofThis(change, name, 'turn');
    },
    decide: async (turn, requestId, decision, signal) =>
      (await import('../cluster/decision.ts')).createApproval(turn, requestId, decision, cluster(), signal),
    mayDecide: async (signal) => (await import('../cluster/decision.ts')).mayDecide(cluster(), signal),
    output: async (turn, signal) => (await import('../cluster/stored.ts')).outputOf(turn, api, signal),
    log: async (turn, signal) => (await import('../cluster/stored.ts')).logOf(turn, api, signal),
    artifact: artifacts(api, () => cluster().namespace),
    async *text({ metadata: { namespace, name, uid }, status }, { follow, ...options }) {
      const { podText, sessionText } = await import('../../core/pod-log/session-text.ts');
      if (follow) yield* sessionText(api, cli.clock, { namespace, name, uid }, options);
      const { podName, incarnation = 0 } = status ?? {};
      if (!follow && podName) yield* podText(api, { namespace, name: podName, session: uid, incarnation }, options);
    },
    async *sessionEvents(session, options, cli) {
      yield* (await import('../follow/stream.ts')).followSession(session, cluster(), cli, options);
    },
    async *namespaceEvents(signal, cli) {
      yield* (await import('../follow/stream.ts')).followNamespace(cluster(), cli, signal);
    },
    buildLines: async (environment, signal) =>
      (await import('../create/environments.ts')).buildLines(environment, cluster(), signal),
    inside: async (session, signal) =>
      (await import('../enter/pod-inside.ts')).podInside(session, cluster(), cli, signal),
    ports: async (session, signal) => (await import('../enter/pod-ports.ts')).podPorts(session, cluster(), cli, signal),
    versions: async (signal) => (await import('./versions.ts')).serverVersion(cluster(), signal),
    table: async (place, options) => (await import('../cluster/listed.ts')).readTable(place, api, options),
  };
}

/** Reads artifacts with one reader, which keeps the content that several artifacts of a turn share. */
function artifacts(api: KubeClient, namespace: () => string): Backend['artifact'] {
  let reader:
    | { read: InstanceType<typeof import('../../core/artifacts/stored.ts')['ArtifactReader']>['read'] }
    | undefined;
  return async (_turn, artifact, signal) => {
    const { ArtifactReader } = await import('../../core/artifacts/stored.ts');
    reader ??= new ArtifactReader(api, namespace());
    return reader.read(artifact, signal);
  };
}
