import type { StoredPod } from '../../core/kube/builtin.ts';
import { isConflict, isNotFound } from '../../core/kube/errors.ts';
import { eachPage } from '../../core/kube/pages.ts';
import { pods } from '../../core/kube/resources.ts';
import { sessions } from '../../core/resources/kinds.ts';
import { LABEL_SESSION_UID } from '../../core/resources/names.ts';
import { givenUpAt } from '../observed/pod-status.ts';
import { isSessionPod, isUnclaimed } from '../observed/session-pods.ts';
import { type GarbageTools, MAX_REMOVALS, surelyNow } from './context.ts';
import { MIN_AGE_MS } from './stored.ts';

/**
 * Removes pods and stored data of sessions that are gone. The cluster's garbage collector does so by owner references;
 * this sweep covers what has none, or what the collector has not reached. Resolves with whether there is more.
 */
export async function sweepOrphans(tools: GarbageTools, signal: AbortSignal): Promise<boolean> {
  const { caches, store } = tools;
  // Namespaces that cannot be read are skipped: nothing is known of their sessions.
  const readable = tools.namespaces?.filter((namespace) => !caches.closed(namespace)) ?? [undefined];
  const known = new Set(caches.allSessions().map(({ metadata }) => metadata.uid));
  const lost = caches
    .allPods()
    .filter((pod) => !caches.closed(pod.metadata.namespace) && !isUnclaimed(pod))
    .filter((pod) => !known.has(uidOf(pod)) && (!pod.metadata.deletionTimestamp || isStuck(tools, pod)));
  const scopes = readable.map((namespace) => (namespace === undefined ? {} : { namespace }));
  const stored = (await Promise.all(scopes.map((scope) => store.list(scope, signal)))).flat();
  const now = surelyNow(tools);
  const forgotten = stored.filter((e) => !known.has(e.sessionUID) && e.createdAt + MIN_AGE_MS <= now);
  if (lost.length + forgotten.length === 0) return false;

  // A consistent list, read after everything found: a session that it lacks will never exist again.
  const present = await sessionUIDs(tools, readable, signal);
  for (const pod of lost.filter((pod) => !present.has(uidOf(pod))).slice(0, MAX_REMOVALS)) {
    signal.throwIfAborted();
    await removePod(tools, pod, signal);
  }
  const garbage = forgotten.filter(({ sessionUID }) => !present.has(sessionUID));
  for (const entry of garbage.slice(0, MAX_REMOVALS)) {
    signal.throwIfAborted();
    await store.delete({ ...entry, kind: entry.kind ?? 'State' }, tools.removals);
  }
  if (garbage.length > 0) tools.log.info({ blobs: garbage.length }, 'blobs without a session removed');
  return garbage.length > MAX_REMOVALS || lost.length > MAX_REMOVALS;
}

/** Reports whether the pod's node does not confirm its end and is not there to do so. */
function isStuck(tools: GarbageTools, pod: StoredPod): boolean {
  const at = givenUpAt(pod, tools.caches.node(pod.spec.nodeName), tools.nodeGraceMs);
  return at !== undefined && at <= surelyNow(tools);
}

async function sessionUIDs(
  { api }: GarbageTools,
  namespaces: readonly (string | undefined)[],
  signal: AbortSignal,
): Promise<Set<string>> {
  const uids = new Set<string>();
  for (const namespace of namespaces) {
    const scope = namespace === undefined ? {} : { namespace };
    await eachPage(api, sessions, { ...scope, limit: 500, metadataOnly: true, signal }, ({ items }) => {
      for (const { metadata } of items) uids.add(metadata.uid);
    });
  }
  return uids;
}

async function removePod({ api, log, removals }: GarbageTools, pod: StoredPod, signal: AbortSignal): Promise<void> {
  const { name, uid } = pod.metadata;
  const ref = { namespace: pod.metadata.namespace, name };
  try {
    const live = await api.get(pods, ref, { signal });
    if (live.metadata.uid !== uid || !isSessionPod(live)) return;
    const force = pod.metadata.deletionTimestamp ? { gracePeriodSeconds: 0 } : {};
    await api.delete(pods, ref, { uid, signal: removals, ...force });
    log.info({ pod: name, namespace: ref.namespace }, 'pod without a session deleted');
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}

function uidOf(pod: StoredPod): string {
  return pod.metadata.labels?.[LABEL_SESSION_UID] ?? '';
}
