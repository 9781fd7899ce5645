import type { StoredPod } from '../../core/kube/builtin.ts';
import { CONTAINER } from '../../core/resources/names.ts';
import { learn } from '../observed/memory.ts';
import type { ReconcileContext } from './context.ts';
import { linkSession } from './link-session.ts';
import { endedLog, isUnreadable } from './unreadable-log.ts';

/** Bytes of an ended container's log that are read at least where it has more: its end. Kubelets keep 10 MiB by default. */
const LOG_BYTES = 16 * 1024 * 1024;

/**
 * Gives the link what the runner of an ended container printed. Logs wait for their places, and are searched one after the other;
 * other sessions are reconciled until then.
 */
export async function takeLog(context: ReconcileContext, { pod }: { pod: StoredPod }): Promise<void> {
  const { effects, memory, signal } = context;
  const opened = effects.links.open(pod, linkSession(context));
  await effects.withoutWorker(async () => {
    const leave = await effects.logPlaces.take(pod.spec.nodeName ?? '', signal);
    try {
      const log = await readLog(context, pod);
      learn(memory, { fact: 'LogRead', podUID: pod.metadata.uid });
      if (log) await opened.takeLog(log);
    } finally {
      leave();
    }
  });
}

/** Reads the log of an ended container; undefined where there is none. */
async function readLog(
  context: ReconcileContext,
  { metadata: { namespace, name, uid } }: StoredPod,
): Promise<Buffer | undefined> {
  const pieces: Buffer[] = [];
  try {
    // Frames open under the keys of their pod only, so the log of another pod of the name says nothing.
    const log = context.effects.api.podLog({ namespace, name }, { container: CONTAINER, signal: context.signal });
    let bytes = 0;
    for await (const piece of endedLog(context, log)) {
      pieces.push(piece);
      bytes += piece.length;
      // The last frames matter most.
      while (bytes - (pieces[0]?.length ?? 0) >= LOG_BYTES) bytes -= pieces.shift()?.length ?? 0;
    }
    return Buffer.concat(pieces);
  } catch (error) {
    if (context.signal.aborted) throw error;
    if (!isUnreadable(context, uid, error)) throw error;
    return undefined;
  }
}
