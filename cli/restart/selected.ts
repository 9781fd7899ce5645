import type { StoredSession } from '../../core/resources/kinds.ts';
import { sessions } from '../../core/resources/kinds.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { Cli } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { findClass } from '../create/allowed.ts';

/** Sessions that a command line selects. What is set must hold together. */
export interface Selection {
  allNamespaces?: boolean;
  class?: string;
  /** Labels, as kubectl takes them. */
  selector?: string;
  /** Sessions whose pod was made otherwise than it would be made now. */
  outdated?: boolean;
  /** Why a session of this uid is to be restarted; the others are not selected. */
  whyOf?: ReadonlyMap<string, string>;
}

/** A session with a pod, and why its pod is to be replaced. */
export interface Selected {
  session: StoredSession;
  why: string;
}

/** Classes by name, each read once; undefined where the caller may not read them. */
export type Classes = (name: string) => Promise<SessionClassSpec | 'NotFound' | undefined>;

export function classesOf(cluster: Cluster, cli: Cli): Classes {
  const read = new Map<string, ReturnType<Classes>>();
  return (name) => {
    const known = read.get(name) ?? findClass(name, cluster, cli);
    read.set(name, known);
    return known;
  };
}

/** Returns the selected sessions that have a pod, those that run no turn first. */
export async function selectSessions(
  { allNamespaces, class: ofClass, selector, outdated, whyOf }: Selection,
  classes: Classes,
  cluster: Cluster,
  cli: Cli,
): Promise<Selected[]> {
  const scope = allNamespaces ? {} : { namespace: cluster.namespace };
  const labels = selector === undefined ? {} : { labelSelector: selector };
  const { items } = await cluster.api.list(sessions, { ...scope, ...labels, signal: cli.interrupted });
  const withPod = items.filter(({ metadata, spec, status }) => {
    const isHere = status?.podName !== undefined && status.phase !== 'Finished' && !metadata.deletionTimestamp;
    return isHere && (ofClass === undefined || spec.class === ofClass);
  });
  const installed = outdated ? await installedRelease(cluster, cli) : undefined;
  const found = await Promise.all(
    withPod.map(async (session) => {
      const why = outdated ? await whyOutdated(session, installed, classes) : 'selected';
      if (why === undefined || (whyOf && !whyOf.has(session.metadata.uid))) return [];
      return [{ session, why: whyOf?.get(session.metadata.uid) ?? why }];
    }),
  );
  const running = ({ session }: Selected) => (session.status?.currentTurn === undefined ? 0 : 1);
  return found.flat().toSorted((a, b) => running(a) - running(b));
}

/**
 * Returns the release of Berth that makes the pods of new sessions; undefined where the caller may not see it, or where the cluster has
 * several. stderr says so, because only the conditions of sessions count then.
 */
async function installedRelease(cluster: Cluster, cli: Cli): Promise<string | undefined> {
  const { api, installations } = await cluster.versions(cli.interrupted);
  const releases = [...new Set(api ? [api] : installations?.map(({ version }) => version))];
  if (releases.length === 1) return releases[0];
  const why = releases.length === 0 ? 'you may not see it' : `there are several: ${releases.join(', ')}`;
  cli.say(`the installed release is unknown (${why}): only sessions whose condition Outdated is True are selected`);
  return undefined;
}

async function whyOutdated(
  { spec, status }: StoredSession,
  installed: string | undefined,
  classes: Classes,
): Promise<string | undefined> {
  const condition = status?.conditions?.find(({ type }) => type === 'Outdated');
  if (condition?.status === 'True') return condition.reason;
  const runner = status?.runnerVersion;
  if (installed === undefined || runner === undefined || runner === installed) return undefined;
  // An image of one's own has its own runner, which a new pod does not change.
  const ofClass = await classes(spec.class);
  if (ofClass === 'NotFound') return undefined;
  const hasOwnRunner = ofClass?.runner === 'Embedded' && (spec.image ?? ofClass.image) !== undefined;
  return hasOwnRunner ? undefined : `runner ${runner}, installed is ${installed}`;
}
