import { anySignal } from '../../core/abort.ts';
import { parseDuration } from '../../core/resources/duration.ts';
import { type StoredSession, sessions } from '../../core/resources/kinds.ts';
import type { Cli } from '../cli.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { CliError, EXIT, failed } from '../errors.ts';
import { followObject } from '../follow/object.ts';
import { printableLine } from '../print/printable.ts';

/** The wait for a session to give up its pod after a request. */
interface Wait {
  /** Duration; undefined: no limit. */
  timeout: string | undefined;
  /** Words for the request after the session's name: while the wait goes on, and at its timeout. */
  words: { still: string; late: string };
}

/**
 * Follows the session until `look` returns a result; says on stderr what keeps the session from giving up its pod. The request stays when
 * the wait ends early: at the timeout (exit code 124), by a signal, or because the cluster does not answer.
 */
export async function untilPodReleased<T>(
  { metadata: { name, uid } }: StoredSession,
  { timeout, words }: Wait,
  cluster: Cluster,
  cli: Cli,
  look: (session: StoredSession) => T | undefined,
): Promise<T> {
  const timer = timeout === undefined ? undefined : AbortSignal.timeout(parseDuration(timeout));
  const signal = timer ? anySignal(cli.interrupted, timer) : cli.interrupted;
  let said = '';
  let last: StoredSession | undefined;
  try {
    for await (const session of followObject(cluster, sessions, name, { clock: cli.clock, signal })) {
      if (session?.metadata.uid !== uid) throw failed(`session ${name} was deleted`);
      last = session;
      const found = look(session);
      if (found !== undefined) return found;
      const why = whyNotYet(session);
      if (why && why !== said) cli.say(`waiting: ${printableLine(why)}`);
      said = why ?? said;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    if (!cli.interrupted.aborted && cluster.outages.present) throw cluster.outages.present;
    cli.say(`session ${name} ${words.still} once ${last && endsFirst(last) ? 'its turn has ended' : 'it can'}`);
    if (cli.interrupted.aborted) throw cli.interrupted.reason;
    throw new CliError('TimedOut', EXIT.timedOut, `session ${name} ${words.late} within ${timeout}`);
  }
  throw new Error('following a session ended without its end');
}

/** Returns the turn that keeps the pod for now. A turn that waits for an approval does not. */
export function endsFirst({ status = {} }: StoredSession): string | undefined {
  const asks = status.conditions?.some(({ type, status }) => type === 'ApprovalPending' && status === 'True');
  return asks ? undefined : status.currentTurn;
}

/** Returns what keeps the session from giving up its pod, as far as its status says so. */
function whyNotYet(session: StoredSession): string | undefined {
  const first = endsFirst(session);
  if (first) return `turn ${first} ends first`;
  const stored = session.status?.conditions?.find(({ type }) => type === 'StatePersisted');
  const isStored = stored?.reason !== 'StateNotStored' && stored?.reason !== 'StateTooLarge';
  return isStored ? undefined : `${stored.reason}: ${stored.message}`;
}
