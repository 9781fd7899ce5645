import type { StoredSession } from '../../core/resources/kinds.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Cluster, KubeCluster } from '../cluster/cluster.ts';
import { finishedMessage, getSession } from '../cluster/stored.ts';
import { withCluster, withKubernetes } from '../connect/connect.ts';
import { checkAllowed } from '../create/allowed.ts';
import { EXIT, refused } from '../errors.ts';
import { doneText } from '../print/print.ts';
import { cancelRunning, type Outcome, type Restarted, restartMany } from '../restart/restart-many.ts';
import { classesOf, type Selection, selectSessions } from '../restart/selected.ts';
import { untilPodReleased } from '../wait/pod-release.ts';

export interface RestartFlags extends ClusterFlags, Omit<Selection, 'whyOf'> {
  usesSecret?: string;
  max?: number;
  now?: boolean;
  dryRun?: boolean;
  wait: boolean;
  timeout?: string;
  output?: 'json' | 'name';
}

/** Replaces the pod of one session, or of all that the flags select. */
export async function restart(name: string | undefined, flags: RestartFlags, cli: Cli): Promise<number> {
  const { class: ofClass, selector, outdated, usesSecret } = flags;
  const selects = [ofClass, selector, outdated, usesSecret].some((flag) => flag !== undefined);
  if (name === undefined && !selects) {
    throw refused('name a session, or select some with --class, --selector, --outdated or --uses-secret');
  }
  if (name === undefined) return restartSelected(flags, cli);
  const ofMany = ['class', 'selector', 'outdated', 'usesSecret', 'allNamespaces', 'max', 'dryRun'] as const;
  const given = ofMany.find((flag) => flags[flag] !== undefined);
  if (given) throw refused(`${FLAGS[given]} is for many sessions; leave it or the name "${name}" out`);
  return restartNamed(name, flags, cli);
}

const FLAGS = {
  class: '--class',
  selector: '--selector',
  outdated: '--outdated',
  usesSecret: '--uses-secret',
  allNamespaces: '--all-namespaces',
  max: '--max',
  dryRun: '--dry-run',
} as const;

/**
 * Has the session's pod replaced once its running turn has ended: the next turn starts a new pod with the present settings.
 * The request stays when the wait for it ends early.
 */
async function restartNamed(name: string, flags: RestartFlags, cli: Cli): Promise<number> {
  return withCluster(flags, cli, async (cluster) => {
    const session = await getSession(cluster, name, cli.interrupted);
    if (session.status?.phase === 'Finished') throw refused(finishedMessage(name, cli));
    // A pod that could have no successor is kept.
    await checkAllowed(session.spec, cluster, cli);
    const asked = await cluster.restart(session, cli.interrupted);
    if (flags.now) await cancelRunning(asked, cluster, cli);
    await untilRestarted(asked, flags, cluster, cli, (outcome) => {
      if (flags.output === 'json') return cli.out(line({ session, outcome: 'Restarted', message: outcome }));
      return cli.out(doneText(`session.berth.dev/${name}`, outcome, flags.output));
    });
    return 0;
  });
}

async function restartSelected(flags: RestartFlags, cli: Cli): Promise<number> {
  if (!flags.wait) throw refused('--no-wait is for one session: of many at most --max are restarted at the same time');
  const use = async (cluster: Cluster, whyOf?: ReadonlyMap<string, string>) => {
    const classes = classesOf(cluster, cli);
    const selected = await selectSessions({ ...flags, ...(whyOf ? { whyOf } : {}) }, classes, cluster, cli);
    if (selected.length === 0) {
      cli.say(`no session ${flags.allNamespaces ? '' : `of namespace ${cluster.namespace} `}with a pod is selected`);
      return EXIT.ok;
    }
    if (flags.dryRun) {
      for (const { session, why } of selected) {
        await cli.out(outcomeText({ session, outcome: 'NotAsked', message: `would restart: ${why}` }, flags));
      }
      return EXIT.ok;
    }
    const counts = new Map<Outcome, number>();
    await restartMany(
      selected,
      { ...flags, max: flags.max ?? DEFAULT_MAX },
      classes,
      cluster,
      cli,
      async (restarted) => {
        counts.set(restarted.outcome, (counts.get(restarted.outcome) ?? 0) + 1);
        await cli.out(outcomeText(restarted, flags));
      },
    );
    cli.say(`${selected.length} selected: ${[...counts].map(([of, count]) => `${count} ${WORDS[of]}`).join(', ')}`);
    if (cli.interrupted.aborted) throw cli.interrupted.reason;
    return counts.has('Failed') || counts.has('Refused') ? EXIT.failed : EXIT.ok;
  };
  const { usesSecret } = flags;
  if (usesSecret !== undefined) {
    return withKubernetes('restart --uses-secret', flags, cli, async (cluster) =>
      use(cluster, await whyBySecret(usesSecret, flags, cluster, cli)),
    );
  }
  if (flags.allNamespaces) return withKubernetes('restart --all-namespaces', flags, cli, (cluster) => use(cluster));
  return withCluster(flags, cli, (cluster) => use(cluster));
}

/** Sessions that may have old values of a Secret, by uid. stderr names the pools whose pods have them, which are not sessions. */
async function whyBySecret(
  secret: string,
  { allNamespaces = false }: RestartFlags,
  cluster: KubeCluster,
  cli: Cli,
): Promise<Map<string, string>> {
  const { usesOf } = await import('../secrets/uses.ts');
  const { uses, secrets } = await usesOf(secret, { allNamespaces }, cluster, cli);
  const changed = new Map(secrets.map(({ namespace, changedAt }) => [namespace, changedAt]));
  const old = uses.filter(({ pod }) => pod === 'Before' || pod === 'Unknown');
  for (const { kind, namespace, name } of old) {
    if (kind !== 'SessionPool') continue;
    const labels = `berth.dev/pool=${name},berth.dev/session-uid=`;
    cli.say(
      `SessionPool ${namespace}/${name} keeps pods from before the change; to replace them: kubectl delete pods --namespace ${namespace} --selector ${labels}`,
    );
  }
  return new Map(
    old.flatMap(({ namespace, uid }) => {
      const at = changed.get(namespace);
      const why = at ? `made before Secret ${secret} was changed (${at})` : `uses Secret ${secret}`;
      return uid === undefined ? [] : [[uid, why] as const];
    }),
  );
}

/** Number of sessions that are restarted at the same time without --max. */
const DEFAULT_MAX = 4;

const WORDS: Record<Outcome, string> = {
  Restarted: 'restarted',
  Asked: 'still to restart',
  Failed: 'failed',
  Refused: 'refused',
  Gone: 'gone',
  NotAsked: 'not asked',
};

function outcomeText(restarted: Restarted, { output, allNamespaces }: RestartFlags): string {
  const { namespace, name } = restarted.session.metadata;
  if (output === 'json') return line(restarted);
  const isDone = restarted.outcome === 'Restarted' || restarted.outcome === 'NotAsked';
  if (output === 'name' && !isDone) return '';
  const where = allNamespaces && !output ? `${namespace}: ` : '';
  return where + doneText(`session.berth.dev/${name}`, restarted.message, output);
}

/** Returns a session and what became of it as a line of JSON. */
function line({ session, outcome, message }: Restarted): string {
  const { namespace, name, uid } = session.metadata;
  return `${JSON.stringify({ namespace, session: name, uid, outcome, message })}\n`;
}

/** Waits, where the flags say so, until the session that was asked to restart has given up its pod. `tell` is called with what became of it. */
export async function untilRestarted(
  asked: StoredSession,
  { wait, timeout }: Pick<RestartFlags, 'wait' | 'timeout'>,
  cluster: Cluster,
  cli: Cli,
  tell: (outcome: string) => unknown,
): Promise<void> {
  const pod = asked.status?.podName;
  if (pod === undefined) {
    await tell('has no pod');
    cli.say('its next turn starts one with the present settings');
    return;
  }
  if (!wait) {
    await tell('asked to restart');
    return;
  }
  const words = { still: 'still restarts', late: 'has not restarted' };
  const next = await untilPodReleased(asked, { timeout, words }, cluster, cli, (now) =>
    now.status?.podName === pod ? undefined : now,
  );
  await tell('restarted');
  if (next.status?.podName === undefined) cli.say('its next turn starts a new pod with the present settings');
}
