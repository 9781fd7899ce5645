import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { Outages } from '../cluster/outages.ts';
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
  using outages = new Outages('server', cli);
  const client = new ServerClient(connection, {
    clock: cli.clock,
    onRequest: (outcome) => outages.note(outcome),
  });
  const objects = new ServerObjects(client);
  try {
    // Programs and paths are those of the image: where the pods run is not known.
    const embedded = async () => false;
    const backend = serverBackend(client, objects, { namespace, outages }, cli);
    return await use({ ...backend, api: objects, namespace, embedded, outages });
  } finally {
    await client.close();
  }
}
