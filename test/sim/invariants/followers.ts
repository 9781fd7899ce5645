import { parseSessionCursor } from '../../../core/follow/cursor.ts';
import type { Placed } from '../../../core/follow/session-events.ts';
import { sessions, turns } from '../../../core/resources/kinds.ts';
import { LABEL_INCARNATION, LABEL_SESSION_UID } from '../../../core/resources/names.ts';
import type { SimContainer } from '../cluster/container.ts';
import { type Facts, ownerOf } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Time within which a follower without faults has read what a pod printed: a connection, an answer of the API, a log. Milliseconds. */
export const LATE_MS = 15_000;

/** Keys of what a follower is told, by which it is counted. */
const eventKey = (podUID: string, seq: number) => `${podUID} event ${seq}`;
const textKey = (text: string) => `text ${text}`;

const EVENT = /^\[berth event\] \{"seq":(\d+),/;

/** Containers of sessions, by the owner that their pods have or had. */
class Containers {
  readonly #facts: Facts;
  /** Session uid → pod uid → its container; a pod without one has none yet. */
  readonly #of = new Map<string, Map<string, SimContainer | undefined>>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  owned(session: string, podUID: string): void {
    const pods = this.#of.get(session) ?? new Map<string, SimContainer | undefined>();
    this.#of.set(session, pods.set(podUID, this.#facts.kubelets.container(podUID) ?? pods.get(podUID)));
  }

  of(session: string): SimContainer[] {
    const pods = this.#of.get(session) ?? new Map<string, SimContainer | undefined>();
    for (const podUID of pods.keys()) this.owned(session, podUID);
    return [...pods.values()].filter((container) => container !== undefined);
  }
}

/** A follower is told nothing of a session that no pod of the session has printed. */
export const toldOfItsOwn: MakeInvariant = (facts) => {
  const containers = new Containers(facts);
  return {
    committed({ storage, object: { metadata } }) {
      const session = metadata.labels?.[LABEL_SESSION_UID];
      if (storage === 'pods' && session) containers.owned(session, metadata.uid ?? '');
    },
    followerTold(follower, session, { event: told }) {
      if (told.type !== 'log' && told.type !== 'agent') return;
      const said =
        told.type === 'log' ? told.data.text : `"at":"${told.data.at}","event":${JSON.stringify(told.data.event)}`;
      if (containers.of(session).some(({ log }) => log.whole.includes(said))) return;
      const what = said.slice(0, 120);
      facts.fail('told of its own', `${follower} is told of session ${session} what no pod of it has printed: ${what}`);
    },
  };
};

/** What a follower was told of a session. */
class Told {
  /** Time from which it has been told, virtual milliseconds. */
  readonly since: number;
  readonly lines = new Map<string, number>();
  /** Uid → the last phase of the session and of its turns. */
  readonly phases = new Map<string, string>();

  constructor(since: number) {
    this.since = since;
  }

  /** Notes what is told; returns how often a line was, 0 for a state. */
  note({ id, event: told }: Placed, podOf: (incarnation: number) => string): number {
    if (told.type === 'session' || told.type === 'turn') this.phases.set(told.data.uid, told.data.phase);
    if (told.type !== 'agent' && told.type !== 'log') return 0;
    const { incarnation = 0, seq = 0 } = parseSessionCursor(id)?.place ?? {};
    const key = told.type === 'log' ? textKey(told.data.text) : eventKey(podOf(incarnation), seq);
    const times = (this.lines.get(key) ?? 0) + 1;
    this.lines.set(key, times);
    return times;
  }
}

/** Reports whether the line names its run and pod, so that no other is like it. */
const isOfRun = (text: string, podUID: string) => text.includes(`/${podUID}`);

/**
 * A follower who goes on from the place that it was told last, over any number of connections, is told each event and each line of a
 * session once, and in the end the phases of the session and of its turns. A log that is lost with its pod, or by a fault, owes nothing:
 * what it had to tell is judged by the lines that a pod's node still has, a while after the faults.
 */
export const followed: MakeInvariant = (facts) => {
  /** Follower and session uid → what it was told. */
  const all = new Map<string, Told>();
  /** Pod uid → session uid and incarnation. */
  const pods = new Map<string, { session: string; incarnation: number }>();
  let calmAt = Number.POSITIVE_INFINITY;

  const podOf = (session: string) => (incarnation: number) =>
    [...pods].find(([, pod]) => pod.session === session && pod.incarnation === incarnation)?.[0] ?? '';

  const judge = (podUID: string, container: SimContainer | undefined) => {
    const { session } = pods.get(podUID) ?? {};
    const { now } = facts.kubelets;
    for (const [key, told] of container ? all : []) {
      if (key.split(' ')[1] !== session || !container) continue;
      for (const { at, text } of container.log.lines) {
        if (at <= told.since || now - Math.max(at, calmAt) < LATE_MS) continue;
        const line = text.slice(0, -1);
        const seq = container.protocol === undefined ? undefined : EVENT.exec(line)?.[1];
        const isJudged = seq !== undefined || isOfRun(line, podUID);
        if (!isJudged || told.lines.has(seq === undefined ? textKey(line) : eventKey(podUID, Number(seq)))) continue;
        facts.fail(
          'followed',
          `${key} was not told a line of pod ${podUID} within ${LATE_MS} ms: ${line.slice(0, 120)}`,
        );
      }
    }
  };
  return {
    committed({ storage, type, object: { metadata } }) {
      const { uid = '', labels } = metadata;
      const session = labels?.[LABEL_SESSION_UID];
      if (storage !== 'pods' || !session) return;
      pods.set(uid, { session, incarnation: Number(labels[LABEL_INCARNATION] ?? 0) });
      if (type === 'DELETED') judge(uid, facts.kubelets.container(uid));
    },
    followerTold(follower, session, placed) {
      const key = `${follower} ${session}`;
      const told = all.get(key) ?? new Told(facts.kubelets.now);
      all.set(key, told);
      const times = told.note(placed, podOf(session));
      const { type, data } = placed.event;
      const isJudged = type === 'agent' || (type === 'log' && [...pods.keys()].some((uid) => isOfRun(data.text, uid)));
      if (times > 1 && isJudged)
        facts.fail('told once', `${key} is told ${times} times: ${JSON.stringify(data).slice(0, 160)}`);
    },
    calmed() {
      calmAt = facts.kubelets.now;
    },
    settled() {
      for (const podUID of pods.keys()) {
        if (facts.kubelets.isThere(podUID)) judge(podUID, facts.kubelets.container(podUID));
      }
      for (const [key, { phases }] of all) {
        const [follower, session] = key.split(' ');
        const live = facts.server.list(sessions).find(({ metadata }) => metadata.uid === session);
        if (!live) continue;
        const own = facts.server.list(turns).filter((turn) => ownerOf(turn) === session);
        for (const { metadata, status } of [live, ...own]) {
          const phase = phases.get(metadata.uid);
          if (phase !== undefined && phase !== status?.phase)
            facts.fail(
              'followed',
              `${follower} was told last that ${metadata.name} is ${phase}, and it is ${status?.phase}`,
            );
        }
      }
    },
  };
};
