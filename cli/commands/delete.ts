import { ifThere, isOtherUID } from '../../core/kube/errors.ts';
import { environments, type StoredSession, type StoredTurn, turns } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster, KubeCluster } from '../cluster/cluster.ts';
import { replaced } from '../cluster/replaced.ts';
import { getSession, getTurn } from '../cluster/stored.ts';
import { withCluster, withKubernetes } from '../connect/connect.ts';
import { failed } from '../errors.ts';
import type { NamedObject } from '../input/flags.ts';
import { doneText } from '../print/print.ts';

export interface DeleteFlags extends ClusterFlags {
  yes?: boolean;
  output?: 'name';
}

/** An object that is there. */
interface Found {
  /** The object with what goes with it, as a question names it. */
  what: string;
  /** As `-o name` prints it. */
  named: string;
  remove(): Promise<void>;
}

/**
 * Deletes sessions with their turns, pods and stored state, and single turns and Environments. All are looked up before
 * anything is deleted. Asks first where a person can answer.
 */
export async function remove(given: NamedObject[], flags: DeleteFlags, cli: Cli): Promise<number> {
  const objects = [...new Map(given.map((object) => [`${object.kind}/${object.name}`, object])).values()];
  if (objects.every(({ kind }) => kind === 'session')) {
    return withCluster(flags, cli, async (cluster) => {
      return removeAll(await Promise.all(objects.map(({ name }) => foundSession(name, cluster, cli))), flags, cli);
    });
  }
  return withKubernetes('delete of turns and Environments', flags, cli, async (cluster) => {
    const find = { session: foundSession, turn: foundTurn, environment: foundEnvironment };
    return removeAll(await Promise.all(objects.map(({ kind, name }) => find[kind](name, cluster, cli))), flags, cli);
  });
}

async function removeAll(found: Found[], { yes, output }: DeleteFlags, cli: Cli): Promise<number> {
  const question = `Delete ${found.map(({ what }) => what).join('; ')}?`;
  if (cli.ask && !yes && !(await cli.ask(question))) throw failed('nothing is deleted');
  for (const { named, remove } of found) {
    await remove();
    await cli.out(doneText(named, 'deleted', output));
  }
  return 0;
}

async function foundSession(name: string, cluster: Cluster, cli: Cli): Promise<Found> {
  const session: StoredSession = await getSession(cluster, name, cli.interrupted);
  return {
    what: `session ${name} with its turns, pods and stored state`,
    named: `session.berth.dev/${name}`,
    remove: () => cluster.deleteSession(session, { signal: cli.interrupted }),
  };
}

async function foundTurn(name: string, cluster: KubeCluster, cli: Cli): Promise<Found> {
  const { metadata, status }: StoredTurn = await getTurn(cluster, name, cli.interrupted);
  const state = isTerminal(status?.phase) ? '' : ', which has not ended,';
  return {
    what: `turn ${name}${state} with its output, log and artifacts`,
    named: `turn.berth.dev/${name}`,
    async remove() {
      const ref = { namespace: cluster.namespace, name };
      try {
        // A session that was deleted before it may have taken it along.
        await ifThere(cluster.api.delete(turns, ref, { uid: metadata.uid, signal: cli.interrupted }));
      } catch (error) {
        throw isOtherUID(error) ? replaced(name, 'turn') : error;
      }
    },
  };
}

async function foundEnvironment(name: string, cluster: KubeCluster, cli: Cli): Promise<Found> {
  const { getEnvironment } = await import('../create/environments.ts');
  const { uid } = (await getEnvironment(cluster, name, cli.interrupted)).metadata;
  return {
    what: `environment ${name}, which sessions that have it keep`,
    named: `environment.berth.dev/${name}`,
    remove: () =>
      cluster.api.delete(environments, { namespace: cluster.namespace, name }, { uid, signal: cli.interrupted }),
  };
}
