import { enterSession } from '../../core/enter/client.ts';
import { PortConnections } from '../../core/enter/ports.ts';
import { TransportError } from '../../core/kube/errors.ts';
import type { StoredSession } from '../../core/resources/kinds.ts';
import type { Cli } from '../cli.ts';
import type { Ports } from '../cluster/backend.ts';
import type { KubeCluster } from '../cluster/cluster.ts';

/**
 * Resolves with the ports of the session's pod once an exec into it is open. Their connections share the exec; where it is full or was
 * lost, another begins. Rejects as `enterSession` does.
 */
export async function podPorts(
  session: StoredSession,
  { api }: Pick<KubeCluster, 'api'>,
  { clock }: Pick<Cli, 'clock'>,
  signal: AbortSignal,
): Promise<Ports> {
  const open = new Set<PortConnections>();
  let opening: Promise<PortConnections> | undefined;
  const begin = async () => {
    const frames = await enterSession(api, session, { want: 'ports' }, { clock, signal });
    const connections = new PortConnections(frames, session.metadata.name);
    open.add(connections);
    connections.ended.then(() => open.delete(connections));
    return connections;
  };
  await begin();
  return {
    async connect(port) {
      for (;;) {
        const withRoom = [...open].find(({ hasRoom }) => hasRoom);
        if (withRoom) {
          // The error also reaches whoever waits for the connection or uses it.
          const connection = withRoom.connect(port).on('error', () => {});
          await connection.connected;
          return connection;
        }
        opening ??= begin().finally(() => {
          opening = undefined;
        });
        const begun = await opening;
        if (!open.has(begun))
          throw new TransportError(`the connection to session ${session.metadata.name} was lost at once`);
      }
    },
    close: () => {
      for (const connections of open) connections.close();
    },
  };
}
