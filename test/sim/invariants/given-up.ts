import type { StoredTurn } from '../../../core/resources/kinds.ts';
import type { Run } from '../cluster/agent.ts';
import type { Word } from '../observer.ts';
import { TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { Terms } from './terms.ts';

/** Returns what selects, of frames that reach a process from a pod, those that are due: those behind a gap are asked for again. */
function dueFrames(): (key: string, frames: Word['frames']) => Word['frames'] {
  /** Pod and process → the number of the frame that is due. */
  const next = new Map<string, number>();
  return (key, frames) =>
    frames.filter(({ seq, kind }) => {
      const due = next.get(key) ?? seq;
      const counts = seq === due || (kind === 'dropped' && seq > due);
      if (counts) next.set(key, seq + 1);
      return counts;
    });
}

/** Reason that a controller logs when it deletes a pod because its runner works on a deleted turn. */
const FOR_WORK = 'it works on a turn that is gone';

/**
 * No pod is given up for work that its runner does not have. A controller knows that a run is over once it has received
 * what the runner said after the run's end: an answer to a ping, or any message once the run's result is acknowledged.
 * A message behind a gap in the numbers says nothing: it is asked for again. Nor does one from before the pod was given its
 * last turn, which the runner may have begun by now.
 */
export const givenUpForWork: MakeInvariant = (facts) => {
  /** Pod and process → the time at which the runner first wrote the latest frames that have arrived, virtual milliseconds. */
  const heard = new Map<string, { message: number; pong: number }>();
  const due = dueFrames();
  const acknowledged = new Set<Run>();
  /** Pod → the time at which a turn was last written Running for it, virtual milliseconds. */
  const givenAt = new Map<string, number>();
  return {
    committed({ storage, object }) {
      const { phase, podUID } = (object as unknown as StoredTurn).status ?? {};
      if (storage === TURNS && phase === 'Running' && podUID) givenAt.set(podUID, facts.kubelets.now);
    },
    heard({ podUID }, { process, frames }) {
      const key = `${podUID} ${process}`;
      const inOrder = due(key, frames);
      if (inOrder.length === 0) return;
      const before = heard.get(key) ?? { message: 0, pong: 0 };
      const pongs = inOrder.filter(({ kind }) => kind === 'pong');
      heard.set(key, {
        message: Math.max(before.message, ...inOrder.map(({ printedAt }) => printedAt)),
        pong: Math.max(before.pong, ...pongs.map(({ printedAt }) => printedAt)),
      });
    },
    acknowledged({ kind, run }) {
      if (kind === 'result') acknowledged.add(run);
    },
    gaveUp({ process, podUID, why }) {
      if (why !== FOR_WORK) return;
      const last = [...facts.runs.values()]
        .flat()
        .filter((run) => run.podUID === podUID)
        .sort((a, b) => b.startedAt - a.startedAt)[0];
      const { message, pong } = heard.get(`${podUID} ${process}`) ?? { message: 0, pong: 0 };
      const known = Math.max(last?.end?.at ?? 0, givenAt.get(podUID) ?? 0);
      if (last?.end && known < (acknowledged.has(last) ? message : pong))
        facts.fail('given up for work', `pod ${podUID}: "${why}", and its last run ended at ${last.end.at} ms`);
    },
  };
};

/** Reason that a controller logs when it deletes a pod because its runner is silent. */
const FOR_SILENCE = 'its runner does not answer';
/** Time for which a runner that is given up for its silence has said nothing at all; half of what a controller waits. */
const SILENT_MS = 15_000;
/** Least time for which it was listened to since the last frame that was due; a controller takes 30 s. */
const LISTENED_MS = 29_000;
/** Least time of these over one attach: a busy node takes seconds until an attach carries anything. */
const AT_ONCE_MS = 10_000;
/** Least time of these, as a part of the node's grace, while its node says nothing; a controller takes all of it. */
const OF_GRACE = 0.97;
/** Time after which an attach that has brought nothing shows that its runner owes an answer: the controller asks when it is open. */
const OWES_MS = 6_000;

/** Time in which a process has listened to a runner since the last frame that was due: of all attaches, and of the longest. */
interface Silence {
  ms: number;
  longestMs: number;
  /** Start of the open attach, virtual milliseconds. */
  since?: number;
}

/**
 * No pod is given up for its silence whose runner has told the controller anything, or was not listened to, within the time that it
 * has to answer. That is the node's grace while other runners of the node owe an answer too and none of them says anything. A runner of
 * which nothing but the clear `ready` comes does not answer: what is asked after it is owed all the same. A process that slept past its
 * lease decides by a clock that stood still; its deletion is refused (`one leader`), so it gives nothing up.
 */
export const givenUpForSilence: MakeInvariant = (facts, { nodeGraceSeconds }) => {
  /** Pod and process → the time of the runner's last frame besides `ready`, virtual milliseconds. */
  const heardAt = new Map<string, number>();
  /** The same → the time of its last frame, and the pod's node. */
  const said = new Map<string, { at: number; node: string | undefined }>();
  const due = dueFrames();
  const terms = new Terms(facts);
  /** Pod and process → its silence. */
  const silences = new Map<string, Silence>();
  const until = ({ ms, longestMs, since }: Silence, now: number): Silence => {
    const last = now - (since ?? now);
    return { ms: ms + last, longestMs: Math.max(longestMs, last) };
  };
  const none: Silence = { ms: 0, longestMs: 0 };
  /** Reports whether other pods of the node owe the process an answer, and none has said anything for `ms`. */
  const isNodeSilent = (podUID: string, process: string, ms: number) => {
    const { now } = facts.kubelets;
    const node = facts.kubelets.nodeOf(podUID);
    const isOther = (key: string) => key.endsWith(` ${process}`) && key !== `${podUID} ${process}`;
    const owes = ([key, { since = now }]: [string, Silence]) =>
      isOther(key) &&
      facts.kubelets.nodeOf(key.split(' ')[0] as string) === node &&
      (said.get(key)?.at ?? Number.NEGATIVE_INFINITY) < since &&
      now - since >= OWES_MS;
    const speaks = ([key, last]: [string, { at: number; node: string | undefined }]) =>
      isOther(key) && last.node === node && last.at >= now - ms;
    return [...silences].some(owes) && ![...said].some(speaks);
  };
  return {
    committed(change) {
      terms.see(change, facts.callBehind(change));
    },
    attached({ podUID }, process) {
      const key = `${podUID} ${process}`;
      silences.set(key, { ...(silences.get(key) ?? none), since: facts.kubelets.now });
    },
    detached({ podUID }, process) {
      const key = `${podUID} ${process}`;
      silences.set(key, until(silences.get(key) ?? none, facts.kubelets.now));
    },
    heard({ podUID }, { process, frames }) {
      const key = `${podUID} ${process}`;
      said.set(key, { at: facts.kubelets.now, node: facts.kubelets.nodeOf(podUID) });
      const told = frames.filter(({ kind }) => kind !== 'ready');
      if (told.length === 0) return;
      heardAt.set(key, facts.kubelets.now);
      if (due(key, told).length === 0) return;
      const { since } = silences.get(key) ?? none;
      silences.set(key, since === undefined ? none : { ...none, since: facts.kubelets.now });
    },
    gaveUp({ process, podUID, why }) {
      if (why !== FOR_SILENCE || terms.isOver(process)) return;
      const key = `${podUID} ${process}`;
      const { now } = facts.kubelets;
      const ago = now - (heardAt.get(key) ?? Number.NEGATIVE_INFINITY);
      const { ms, longestMs } = until(silences.get(key) ?? none, now);
      const isEarly = isNodeSilent(podUID, process, ms) && ms < OF_GRACE * 1000 * nodeGraceSeconds;
      if (ago < SILENT_MS || ms < LISTENED_MS || longestMs < AT_ONCE_MS || isEarly)
        facts.fail(
          'given up for silence',
          `pod ${podUID}: "${why}", and ${process} was told something ${ago} ms ago and has listened for ${ms} ms, ${longestMs} ms at once${isEarly ? ', and its whole node is silent' : ''}`,
        );
    },
  };
};
