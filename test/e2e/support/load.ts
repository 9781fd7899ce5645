/** Many turns at once whose agents prove how often each of them ran. */
import assert from 'node:assert/strict';
import { setTimeout as after } from 'node:timers/promises';
import type { TestContext } from 'vitest';
import { KubeClient } from '../../../core/kube/client.ts';
import { loadConnection } from '../../../core/kube/config.ts';
import { pods } from '../../../core/kube/resources.ts';
import { silentLogger, systemClock, systemRandom } from '../../../core/system.ts';
import { eventually } from '../../support/eventually.ts';
import { type Any, apply, EVERY_MS, get, session, turn } from './cluster.ts';
import { pythonAgent, pythonImage } from './images.ts';

/**
 * Creates `sessions` sessions of `turns` turns each; every turn adds its name to the notes in its session's state. Their agent is
 * that of `spec`, or of their class.
 */
export async function giveTurns(
  namespace: string,
  sessions: number,
  turns: number,
  sleep: number,
  spec: object = { image: pythonImage, agent: { command: pythonAgent } },
): Promise<void> {
  const objects: object[] = [];
  for (let s = 1; s <= sessions; s++) {
    objects.push(session(namespace, `load-${s}`, { agent: undefined, ...spec }));
    for (let t = 1; t <= turns; t++) {
      objects.push(turn(namespace, `load-${s}-${t}`, `load-${s}`, { note: `load-${s}-${t}`, sleep }));
    }
  }
  await apply(...objects);
}

/** All turns of the namespace once none is left that has not ended. */
export async function allEnded(namespace: string, count: number, timeoutMs: number): Promise<Any[]> {
  return eventually(
    async () => {
      const { items } = await get(['turns', '-n', namespace]);
      return items.length === count && items.every(({ status }: Any) => status?.finishedAt) ? items : undefined;
    },
    { timeoutMs, everyMs: EVERY_MS, what: `${count} turns of ${namespace} have ended` },
  );
}

/** Asserts that every turn succeeded at its first attempt and that its session's state holds each note once, in order. */
export function assertOnce(turns: readonly Any[]): void {
  for (const { metadata, spec, status } of turns) {
    assert.equal(status.phase, 'Succeeded', `${metadata.name}: ${JSON.stringify(status.error)}`);
    assert.equal(status.attempt, 1, metadata.name);
    const before = turns.filter((other) => other.spec.session === spec.session && other.status.index <= status.index);
    const notes = before.sort((a, b) => a.status.index - b.status.index).map((other) => other.spec.input.note);
    assert.deepEqual(status.output.notes, notes, metadata.name);
  }
}

/** Turns that are given one after the other, as long as something goes on. */
export interface Load {
  /** Sessions that get turns. */
  readonly sessions: string[];
  /** Number of the turns given so far. */
  readonly given: number;
  /** Gives turns until the work has ended, and one more to each session. */
  during(work: () => Promise<void>): Promise<void>;
}

/** Interval between two rounds of turns, one for each session: about as fast as an agent that takes a second. */
const ROUND_MS = 1_500;

/** Returns a load of turns whose input is their name. */
export function underLoad(namespace: string, sessions: readonly string[]): Load {
  const all = [...sessions];
  let [rounds, given] = [0, 0];
  const round = async () => {
    rounds += 1;
    await apply(...all.map((name) => turn(namespace, `${name}-${rounds}`, name, `${name}-${rounds}`)));
    given += all.length;
  };
  return {
    sessions: all,
    get given() {
      return given;
    },
    during: async (work) => {
      let isOver = false;
      const worked = work().finally(() => {
        isOver = true;
      });
      while (!isOver) {
        await round();
        await after(ROUND_MS);
      }
      await worked;
      await round();
    },
  };
}

/**
 * Names of turns that did not succeed, of turns that ran twice, and of turns that are missing in the notes of a later one.
 * Each turn adds its name to the notes of its session and outputs them, one a line.
 */
export function countedTurns(turns: readonly Any[]): { lost: string[]; doubled: string[]; missing: string[] } {
  const counted = { lost: [] as string[], doubled: [] as string[], missing: [] as string[] };
  for (const ofSession of Map.groupBy(turns, ({ spec }) => spec.session).values()) {
    const ended = ofSession.toSorted((a, b) => a.status.index - b.status.index);
    const succeeded = ended.filter(({ status }) => status.phase === 'Succeeded');
    for (const { metadata, status } of ended) {
      if (status.phase !== 'Succeeded') counted.lost.push(`${metadata.name}: ${JSON.stringify(status.error)}`);
    }
    const last: string = succeeded.at(-1)?.status.output ?? '';
    const notes = Map.groupBy(last.split('\n').filter(Boolean), (note) => note);
    for (const [note, times] of notes) if (times.length > 1) counted.doubled.push(note);
    for (const { metadata } of succeeded) if (!notes.has(metadata.name)) counted.missing.push(metadata.name);
  }
  return counted;
}

/**
 * Counts pods with a label by a watch of the test's own, from an empty beginning. `stop` resolves with what was seen once the watch
 * has shown at least `expected` of them and the end of all: it may lag behind what is known otherwise.
 */
export async function countPods(
  t: TestContext,
  labelSelector: string,
): Promise<{ stop(expected: number): Promise<{ most: number; ever: number }> }> {
  const connection = await loadConnection();
  const surroundings = { clock: systemClock, random: systemRandom, log: silentLogger };
  const client = new KubeClient({ connection, ...surroundings, userAgent: 'berth-e2e' });
  const aborted = new AbortController();
  // However the test ends: a connection that stays would keep its file from ending.
  t.onTestFinished(async () => {
    aborted.abort();
    await client.close();
  });
  const { metadata, items } = await client.list(pods, { labelSelector });
  assert.equal(items.length, 0, `there are pods with ${labelSelector} before the count begins`);
  const present = new Set<string>();
  const ever = new Set<string>();
  let most = 0;
  let problem: unknown;
  const counting = (async () => {
    const options = { labelSelector, resourceVersion: metadata.resourceVersion, signal: aborted.signal };
    for await (const event of client.watch(pods, options)) {
      if (event.type === 'BOOKMARK') continue;
      const { uid } = event.object.metadata;
      if (event.type === 'DELETED') present.delete(uid);
      else present.add(uid);
      ever.add(uid);
      most = Math.max(most, present.size);
    }
    if (!aborted.signal.aborted) throw new Error('the watch ended before the count did');
  })().catch((error) => {
    if (!aborted.signal.aborted) problem = error;
  });
  return {
    stop: async (expected) => {
      const hasSeenAll = () => problem !== undefined || (ever.size >= expected && present.size === 0);
      await eventually(hasSeenAll, {
        timeoutMs: 180_000,
        what: `${expected} pods with ${labelSelector} came and went`,
      });
      aborted.abort();
      await counting;
      if (problem) throw problem;
      return { most, ever: ever.size };
    },
  };
}
