import { parseExact } from '../../core/json.ts';
import { isNotFound } from '../../core/kube/errors.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import { type StoredSession, type StoredTurn, sessions, turns } from '../../core/resources/kinds.ts';
import { parseStoreKey } from '../../core/resources/names.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import { failed, refused } from '../errors.ts';
import { withoutKind } from '../input/flags.ts';
import type { Cluster } from './cluster.ts';

/** Reads of objects and of objects that belong to them, with errors that say what to do. */

export async function getSession({ api, namespace }: Cluster, name: string, signal: AbortSignal) {
  try {
    return await api.get(sessions, { namespace, name }, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    // A cluster without Berth answers 404 too; a list shows the difference.
    await api.list(sessions, { namespace, limit: 1, signal });
    throw refused(`there is no session "${name}" in namespace "${namespace}"; berth list -A shows those there are`);
  }
}

/** Returns the message for a session that has no pod to give up any more. */
export function finishedMessage(name: string, cli: { name: string }): string {
  return `session ${name} is finished: it has no pod, and takes no turn; remove it with: ${cli.name} delete ${name}`;
}

export async function getTurn({ api, namespace }: Cluster, name: string, signal: AbortSignal) {
  try {
    return await api.get(turns, { namespace, name }, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    await api.list(turns, { namespace, limit: 1, signal });
    throw refused(`there is no turn "${name}" in namespace "${namespace}"; berth list turns shows those there are`);
  }
}

/**
 * Returns the session of this name or, where there is none, the turn of this name and its session. The name may have its
 * kind before it, as in turn.berth.dev/notes-1.
 */
export async function sessionOrTurn(
  cluster: Cluster,
  named: string,
  signal: AbortSignal,
): Promise<{ session: StoredSession; turn?: StoredTurn }> {
  const { api, namespace } = cluster;
  const { kind, name } = withoutKind(named);
  if (kind === 'session') return { session: await getSession(cluster, name, signal) };
  if (kind === 'turn') {
    const turn = await getTurn(cluster, name, signal);
    return { session: await getSession(cluster, turn.spec.session, signal), turn };
  }
  const fieldSelector = `metadata.name=${name}`;
  const [session] = (await api.list(sessions, { namespace, fieldSelector, signal })).items;
  if (session) return { session };
  const [turn] = (await api.list(turns, { namespace, fieldSelector, signal })).items;
  if (turn) return { session: await getSession(cluster, turn.spec.session, signal), turn };
  throw refused(
    `there is no session or turn "${name}" in namespace "${namespace}"; berth list -A shows those there are`,
  );
}

/** Returns the turns of a session, in their order; turns without an index come last. */
export async function turnsOf({ api }: Cluster, session: StoredSession, signal: AbortSignal): Promise<StoredTurn[]> {
  const { namespace, name, uid } = session.metadata;
  const { items } = await api.list(turns, { namespace, fieldSelector: `spec.session=${name}`, signal });
  const own = items.filter(({ metadata: { ownerReferences = [] } }) =>
    ownerReferences.length === 0 ? true : ownerReferences.some((owner) => owner.uid === uid),
  );
  const place = (turn: StoredTurn) => turn.status?.index ?? Number.MAX_SAFE_INTEGER;
  const created = (turn: StoredTurn) => Date.parse(turn.metadata.creationTimestamp);
  return own.sort((a, b) => place(a) - place(b) || created(a) - created(b));
}

/** Returns the turn's output from the status or the store; undefined when it has none. */
export async function outputOf(turn: StoredTurn, api: Pick<KubeApi, 'get'>, signal: AbortSignal): Promise<unknown> {
  const { outputRef, output } = turn.status ?? {};
  if (outputRef === undefined) return output;
  return parseExact((await readRef(turn, outputRef, 'Output', api, signal)).toString('utf8'));
}

/** Returns the readable text of an ended turn's agent. */
export async function logOf(turn: StoredTurn, api: Pick<KubeApi, 'get'>, signal: AbortSignal): Promise<string> {
  const { log } = turn.status ?? {};
  if (!log) return '';
  const text = log.ref ? (await readRef(turn, log.ref, 'Log', api, signal)).toString('utf8') : (log.inline ?? '');
  return keptLog(log, text);
}

/** Returns the kept text of a log, after a line that says how much is missing before it. */
export function keptLog({ bytes, truncated }: NonNullable<TurnStatus['log']>, text: string): string {
  const missing = bytes - Buffer.byteLength(text);
  return truncated && missing > 0 ? `[the first ${missing} bytes were not kept]\n${text}` : text;
}

async function readRef(
  turn: StoredTurn,
  ref: string,
  kind: 'Output' | 'Log',
  api: Pick<KubeApi, 'get'>,
  signal: AbortSignal,
): Promise<Buffer> {
  const key = parseStoreKey(ref);
  if (!key)
    throw failed(`turn ${turn.metadata.name}: its reference "${ref}" is none that this version of berth can read`);
  // Few outputs are in the store; its module loads zod.
  const { readStored } = await import('../../core/store/read.ts');
  return readStored(api, { namespace: turn.metadata.namespace, ...key, kind }, signal);
}
