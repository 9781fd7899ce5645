/** Many sessions, with pods and suspended: what they cost the controller, the turns beside them and its successor. */
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../core/kube/client.ts';
import { namespaces } from '../../core/kube/resources.ts';
import { type StoredSession, sessions } from '../../core/resources/kinds.ts';
import { eventually } from '../support/eventually.ts';
import { AT_ONCE, someAtOnce } from './at-once.ts';
import { attaches, type Leader, leader, leaderMemory, withVariable } from './controller.ts';
import { compared, type Figure } from './figures.ts';
import { type Ground, newSession } from './ground.ts';
import { secondsAfterKill } from './leader-change.ts';
import type { Outcome } from './run.ts';
import { count, SAMPLES } from './settings.ts';
import { withSmallClass } from './small-class.ts';
import { median } from './statistics.ts';
import { range } from './table.ts';

/** Sessions with pods: two nodes of the kind cluster take 600 pods. */
const LIVE = count(500, 20);
/** Starts at once: with more, nodes that have hundreds of pods and little CPU take longer for each than a start may take. */
const STARTS = 8;
/** Requests of a live session's pod: two nodes have room for all of them. */
const REQUESTS = { cpu: '2m', memory: '8Mi' };
const SUSPENDED = count(20_000, 200);
const CHANGES = count(3, 1);
const MB = 1e6;
const PAUSE_MS = 200;
const LOOK_MS = 2000;
const LIMIT_MS = 20 * 60_000;

/** Sessions that wait suspended, in a namespace of their own. */
class Many {
  readonly #client: KubeClient;
  readonly #namespace: string;

  constructor(client: KubeClient, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** Seconds until all are created, and from then until the controller has written the phase of the last. */
  async create(): Promise<{ created: number; written: number }> {
    const client = this.#client;
    const namespace = this.#namespace;
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    const started = performance.now();
    await someAtOnce(SUSPENDED, (i) => client.create(sessions, newSession(namespace, `many-${i}`, { suspend: true })));
    const created = performance.now();
    await this.#becomes('status.phase!=Suspended', 'all are Suspended');
    return { created: (created - started) / 1000, written: (performance.now() - created) / 1000 };
  }

  /** Seconds until all are deleted with their namespace. */
  async delete(): Promise<number> {
    const started = performance.now();
    await this.#client.delete(namespaces, { name: this.#namespace });
    await this.#becomes(undefined, 'the suspended sessions are gone');
    return (performance.now() - started) / 1000;
  }

  /** Waits until no session is left that the selector selects. */
  async #becomes(fieldSelector: string | undefined, what: string): Promise<void> {
    const selected = { namespace: this.#namespace, limit: 1, ...(fieldSelector ? { fieldSelector } : {}) };
    // The API server goes through all sessions for each look.
    const isDone = async () => {
      await delay(LOOK_MS);
      return (await this.#client.list(sessions, selected)).items.length === 0;
    };
    await eventually(isDone, { timeoutMs: LIMIT_MS, what });
  }
}

/** Sessions with pods, and the seconds until each had answered a first turn. */
async function live(ground: Ground, ofClass: string): Promise<{ ready: StoredSession[]; seconds: number }> {
  const started = performance.now();
  const ready = await someAtOnce(LIVE, (i) => ground.readyOne(`live-${i}`, { class: ofClass }), STARTS);
  return { ready, seconds: (performance.now() - started) / 1000 };
}

/** Turns of the sessions, one after the other: milliseconds. */
async function turnsOf(ground: Ground, ready: readonly StoredSession[]): Promise<number[]> {
  const values: number[] = [];
  for (let i = 0; i < SAMPLES; i++) values.push((await ground.turn(ready[i % ready.length] as StoredSession)).ms);
  return values;
}

/** Resident memory of the leader, megabytes. */
async function memoryOf(leads: Leader): Promise<number[]> {
  const values: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    for (const { rss } of await leaderMemory(leads)) values.push(rss / MB);
    await delay(PAUSE_MS);
  }
  return values;
}

interface Measured {
  turns: number[];
  open: number;
  memory: number[];
  changes: number[];
}

/** Figures of the sessions with pods: turns, memory of the leader with every attach open, seconds of a leader change. */
async function measure(ground: Ground, ready: readonly StoredSession[]): Promise<Measured> {
  // The first turn of a session under a new leader opens its attach.
  await someAtOnce(ready.length, (i) => ground.turn(ready[i] as StoredSession));
  const turns = await turnsOf(ground, ready);
  const leads = await leader();
  const open = await attaches(ground.cluster.client, leads);
  const memory = await memoryOf(leads);
  const changes: number[] = [];
  for (let i = 0; i < CHANGES; i++) {
    changes.push(await secondsAfterKill(() => ground.turn(ready[0] as StoredSession)));
  }
  return { turns, open, memory, changes };
}

/** The same with many suspended sessions beside, and without. */
export function scale(ground: Ground): Promise<Outcome> {
  const work = (ofClass: string) =>
    withVariable('BERTH_MAX_RUNNING', String(LIVE + STARTS), async () => {
      const { ready, seconds: started } = await live(ground, ofClass);
      const without = await measure(ground, ready);
      const many = new Many(ground.cluster.client, `${ground.namespace}-many`);
      let made: { created: number; written: number };
      let beside: Measured;
      let gone: number;
      try {
        made = await many.create();
        beside = await measure(ground, ready);
      } finally {
        gone = await many.delete();
      }
      const deleted = performance.now();
      await ground.gone(...ready.map(({ metadata }) => metadata.name));
      const ended = (performance.now() - deleted) / 1000;
      return outcome({ without, beside, made, gone, started, ended });
    });
  return withSmallClass(ground, work, { requests: REQUESTS });
}

interface Seen {
  without: Measured;
  beside: Measured;
  made: { created: number; written: number };
  gone: number;
  started: number;
  ended: number;
}

function outcome({ without, beside, made: { created, written }, gone, started, ended }: Seen): Outcome {
  const total = SUSPENDED + LIVE;
  const floors = { '120 MB + 10 KB a session + 130 KB an open attach': [120 + 0.01 * total + 0.13 * beside.open] };
  const least = `${median(without.memory).toFixed(0)} MB with ${LIVE} sessions and ${without.open} open attaches`;
  const note = `RSS; ${total} sessions, ${beside.open} open attaches; ${least}`;
  const figures: Figure[] = [
    {
      what: `${LIVE} sessions with pods, ${STARTS} starts at once, until each has answered`,
      measured: `${seconds([started])} s`,
      values: started,
    },
    {
      what: `${LIVE} sessions with pods, deleted by ${AT_ONCE} clients, until no pod is left`,
      measured: `${seconds([ended])} s`,
      values: ended,
    },
    compared(`turn of one of ${LIVE} sessions beside ${SUSPENDED} suspended sessions`, beside.turns, {
      what: 'without them',
      values: without.turns,
    }),
    {
      what: `kill -9 of the leader beside ${SUSPENDED} suspended sessions → result of a turn of a session with a pod`,
      measured: `${seconds(beside.changes)} s`,
      beside: `without them: ${seconds(without.changes)} s`,
      values: { beside: beside.changes, without: without.changes },
    },
    {
      what: `${SUSPENDED} sessions, created suspended by ${AT_ONCE} clients`,
      measured: `created in ${seconds([created])} s; the last phase is written ${seconds([written])} s later; gone ${seconds([gone])} s after the deletion of their namespace`,
      values: { created, written, gone },
    },
  ];
  return { rows: [{ id: 'controller-memory', values: beside.memory, floors, note }], figures };
}

const seconds = (values: readonly number[]) => range(values.map((value) => Number(value.toFixed(1))));
