import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster.ts';
import { serverConnection } from './address.ts';
import { serverBackend } from './backend.ts';
import type { ChosenServer } from './chosen.ts';
import { ServerClient } from './client.ts';
import { ServerObjects } from './objects.ts';

/** Calls `use` with the sessions of a server of the HTTP API. */
export async function withServer<R>(
  chosen: ChosenServer,
  flags: ClusterFlags,
  cli: Cli,
  use: (cluster: Cluster) => Promise<R>,
): Promise<R> {
  const connection = serverConnection(chosen, flags, cli);
  const namespace = flags.namespace ?? connection.namespace;
  const client = new ServerClient(connection, cli);
  const objects = new ServerObjects(client);
  try {
    // Programs and paths are those of the image: where the pods run is not known.
    const embedded = async () => false;
    return await use({ ...serverBackend(client, objects, namespace, cli), api: objects, namespace, embedded });
  } finally {
    await client.close();
  }
}
