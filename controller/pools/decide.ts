import { understand } from '../../core/frames/messages.ts';
import type { StoredPod } from '../../core/kube/builtin.ts';
import { LABEL_TEMPLATE } from '../../core/resources/names.ts';
import type { SessionPoolStatus } from '../../core/resources/sessionpool.ts';
import { movedByClockJumps } from '../observed/clock-jumps.ts';
import { type LinkView, silencePatience, UNRESPONSIVE_MS } from '../observed/link-view.ts';
import { givenUpAt, isHopeless, isOver, ownContainer, podProblem, startedContainer } from '../observed/pod-status.ts';
import type { Problem } from '../observed/world.ts';
import { DEFAULT_START_MS } from '../settings/effective.ts';
import { claimableNow, isClaimable, isUnheardOf } from './claimable.ts';
import type { PoolFailures, PoolPod, PoolWorld } from './pool-world.ts';
import { poolStatus } from './status.ts';

/**
 * Pods of one pool that start at the same time: one for each CPU of the cluster within these limits, and the least while one of them has
 * a problem. A start keeps a CPU of its node busy for some tenths of a second, most of it for the sandbox. Four keep two CPUs busy for
 * no longer than one start takes. A session that starts cold beside them then waits for one start at most.
 */
export const LEAST_STARTING = 4;
const MOST_STARTING = 32;

/**
 * Age from which a pod is replaced, while it can still be claimed: ten minutes before it can not. Pods of one age are
 * replaced one after the other within that time.
 */
const OLD_MS = 50 * 60_000;
/** Pause after pods that did not start: doubled with each, from the first to the last. */
const FIRST_PAUSE_MS = 1_000;
const LAST_PAUSE_MS = 5 * 60_000;
/** Time between two pods that are given up for a session that waits for quota or a node: it takes as long to show that one helps. */
const GIVE_WAY_MS = 5_000;
/**
 * Time without a session that starts after which the pool is filled again, and the longest wait for it. The start of a pod would take the
 * CPU from the turns of the sessions that have just claimed one, and from the starts of those that found none.
 */
export const STARTS_PAUSE_MS = 200;
export const STARTS_LIMIT_MS = 2_000;
/**
 * Time for which a pod whose runner owes an answer is still shown as ready, and after which it is looked at again. Runners are
 * asked now and then, and no event brings the pool an answer. No session claims it until then.
 */
const ANSWER_MS = 1_000;
/** Time until a pool that found no room looks again, where no event comes with room. */
const AGAIN_MS = 10_000;

/** A pod that is given up. */
export interface Removal {
  pod: StoredPod;
  why: string;
  /** The object is removed at once, although its node has not confirmed that nothing runs any more. */
  force?: true;
}

export interface PoolDecision {
  /** Number of pods to create. */
  create: number;
  remove: Removal[];
  /** Pods that a session can claim; see `claimableNow`. */
  claimable: ReadonlySet<string>;
  /** There is a pod that no session could claim at the last reconcile: those that wait are to look again. */
  offers: boolean;
  /** A pod is removed for a session that waits for quota or a node. */
  gaveWay: boolean;
  status: SessionPoolStatus;
  failures: PoolFailures | undefined;
  /** Time of the next reconcile, milliseconds since the epoch; Infinity where no time brings a change. */
  wakeAt: number;
}

/** Decides which pods a pool creates and gives up, and what it shows; pure. */
export function decidePool(world: PoolWorld): PoolDecision {
  const { now, monotonic, pool, template, pods, room, blocked, nodeGraceMs } = world;
  const remove: Removal[] = [];
  let gaveWay = false;
  let wakeAt = Number.POSITIVE_INFINITY;
  const wake = (at: number) => {
    wakeAt = Math.min(wakeAt, at);
  };
  for (const { pod, node } of pods.filter(({ pod }) => pod.metadata.deletionTimestamp)) {
    const at = givenUpAt(pod, node, nodeGraceMs);
    if (at === undefined) continue;
    if (at <= now) remove.push({ pod, why: 'its node does not answer', force: true });
    else wake(at);
  }

  const present = pods.filter(({ pod, taken }) => !pod.metadata.deletionTimestamp && !taken);
  const broken = present.flatMap((one) => {
    const problem = brokenBy(world, one);
    return problem ? [{ pod: one.pod, problem }] : [];
  });
  for (const { pod, problem } of broken) remove.push({ pod, why: problem.message });
  const sound = present.filter(({ pod }) => !broken.some((one) => one.pod === pod));
  const ready = sound.filter((one) => isReady(world, one));
  const failures = failuresAfter(
    world,
    broken.map(({ problem }) => problem),
    ready.length >= pool.spec.replicas || ready.some((one) => provesStart(one, world.failures)),
  );

  const giveUp = ({ pod }: PoolPod, why: string) => remove.push({ pod, why });
  const givenUp = sound.filter(({ isGivenUp }) => isGivenUp);
  for (const one of givenUp) giveUp(one, 'its slot goes to a session that waits');
  let kept = sound.filter(({ isGivenUp }) => !isGivenUp);
  if (blocked?.reason === 'Unschedulable') {
    // They take room on no node, and would be tried again and again before the session's.
    for (const one of kept.filter(isHomeless)) giveUp(one, `session ${blocked.session} waits: ${blocked.reason}`);
    kept = kept.filter((one) => !isHomeless(one));
  }
  const [first] = byValue(world, kept);
  const gaveWayMs = monotonic - world.gaveWayAt;
  if (blocked && first && gaveWayMs < GIVE_WAY_MS) wake(now + GIVE_WAY_MS - gaveWayMs);
  else if (blocked && first && givenUp.length === 0) {
    gaveWay = true;
    giveUp(first, `session ${blocked.session} waits: ${blocked.reason}`);
    kept = kept.filter((one) => one !== first);
  }

  const wanted = 'hash' in template && !pool.metadata.deletionTimestamp ? pool.spec.replicas : 0;
  const surplus = byValue(world, kept).slice(
    0,
    Math.max(0, kept.filter((one) => !isStale(world, one)).length - wanted),
  );
  for (const one of surplus) giveUp(one, 'the pool asks for fewer pods');
  kept = kept.filter((one) => !surplus.includes(one));

  const fresh = kept.filter((one) => !isStale(world, one));
  const isFree = room.free || room.why === 'Unknown';
  const stale = byValue(
    world,
    kept.filter((one) => isStale(world, one)),
  );
  // A pod that can still be claimed stays until its replacement is ready.
  const replaced = fresh.filter((one) => isReady(world, one)).length;
  const excess = Math.max(0, stale.length + replaced - wanted);
  for (const [index, one] of stale.entries()) {
    const isUseless = !isReady(world, one);
    if (wanted === 0 || index < excess || (isUseless && (replaced > 0 || !isFree))) giveUp(one, 'it is replaced');
  }

  const starting = sound.filter(({ link }) => isUnheardOf(link));
  const againAt = failures?.againAt ?? 0;
  const missing = wanted - fresh.length;
  const mayCreate = missing > 0 && !blocked && givenUp.length === 0;
  const startsMs = startsLastMs(world);
  if (mayCreate && now < againAt) wake(againAt);
  else if (mayCreate && startsMs > 0) wake(now + startsMs);
  if (missing > 0) wake(now + AGAIN_MS);
  const isTime = now >= againAt && startsMs <= 0;
  const most = Math.max(LEAST_STARTING, Math.min(MOST_STARTING, Math.floor(world.cpus)));
  const atOnce = starting.some(({ pod }) => podProblem(pod)) ? LEAST_STARTING : most;
  const create = mayCreate && room.free && isTime ? Math.max(0, Math.min(missing, atOnce - starting.length)) : 0;
  if (sound.some(({ link }) => link?.silentSince !== undefined)) wake(now + ANSWER_MS);
  for (const one of sound) {
    for (const at of [Date.parse(one.pod.metadata.creationTimestamp) + OLD_MS, answersBy(world, one)]) {
      if (at > now) wake(at);
    }
  }
  const shown = kept.filter((one) => !remove.some(({ pod }) => pod === one.pod));
  const status = poolStatus(world, {
    wanted,
    replicas: shown.length,
    ready: shown.filter((one) => isReady(world, one)).length,
    stale: shown.filter((one) => isStale(world, one)).length,
    problem: problemOf(failures, shown),
  });
  const claimable = claimableNow(pods);
  const offers = [...claimable].some((one) => !world.claimableBefore.has(one));
  return { create, remove, claimable, offers, gaveWay, status, failures, wakeAt };
}

/** The starts of sessions with one that is seen at `now`, monotonic milliseconds. Long after the last one others begin. */
export function startsAfter(before: PoolWorld['starts'], now: number): PoolWorld['starts'] {
  const goOn = before !== undefined && now - before.lastAt <= STARTS_LIMIT_MS;
  return { firstAt: goOn ? before.firstAt : now, lastAt: now };
}

/** Milliseconds of the wait for sessions that start, before pods are created; 0 or less when there are none. */
function startsLastMs({ starts, monotonic }: PoolWorld): number {
  if (!starts) return 0;
  return Math.min(starts.lastAt + STARTS_PAUSE_MS, starts.firstAt + STARTS_LIMIT_MS) - monotonic;
}

function isHomeless({ pod }: PoolPod): boolean {
  return podProblem(pod)?.reason === 'Unschedulable';
}

function isReady({ template, now, monotonic, protocol }: PoolWorld, one: PoolPod): boolean {
  if (!('hash' in template)) return false;
  const link = one.link && withoutShortSilence(one.link, monotonic);
  return isClaimable({ ...one, link, now, protocol }, template.hash);
}

/** The link without an answer that the runner has owed for a moment only. */
function withoutShortSilence(link: LinkView, monotonic: number): LinkView {
  const { silentSince = Number.NEGATIVE_INFINITY, ...answered } = link;
  return monotonic - silentSince < ANSWER_MS ? answered : link;
}

/** Reports whether the pod is to be replaced: by its template, its age, its runner's release or its node. */
function isStale({ now, template, protocol }: PoolWorld, { pod, link, node }: PoolPod): boolean {
  const { labels, creationTimestamp } = pod.metadata;
  if ('hash' in template && labels?.[LABEL_TEMPLATE] !== template.hash) return true;
  if (now - Date.parse(creationTimestamp) >= OLD_MS || node?.cordoned) return true;
  return link?.protocol !== undefined && !understand(link.protocol, protocol);
}

/** Pods in the order in which they are given up: starting ones, then stale ones, then the oldest. */
function byValue(world: PoolWorld, pods: readonly PoolPod[]): PoolPod[] {
  const valued = pods.map((one) => ({
    one,
    rank: !isReady(world, one) ? 0 : isStale(world, one) ? 1 : 2,
    born: Date.parse(one.pod.metadata.creationTimestamp),
    name: one.pod.metadata.name,
  }));
  return valued.sort((a, b) => a.rank - b.rank || a.born - b.born || (a.name < b.name ? -1 : 1)).map(({ one }) => one);
}

/**
 * Time by which the pod's runner must answer for the first time, milliseconds since the epoch; Infinity once it has. A pod that runs
 * is asked first: a new leader does not know that it may have answered long ago.
 */
function answersBy({ now, clockJumps }: PoolWorld, { pod, link }: PoolPod): number {
  if (!isUnheardOf(link)) return Number.POSITIVE_INFINITY;
  const asked = startedContainer(pod) ? movedByClockJumps(link?.openedAt ?? now, clockJumps) + UNRESPONSIVE_MS : 0;
  const createdAt = movedByClockJumps(Date.parse(pod.metadata.creationTimestamp), clockJumps);
  return Math.max(createdAt + DEFAULT_START_MS, asked);
}

/** The problem for which the pod is given up; undefined while it is sound. */
function brokenBy(world: PoolWorld, one: PoolPod): Problem | undefined {
  const { now, monotonic, nodeGraceMs } = world;
  const { pod, link, node } = one;
  const { name } = pod.metadata;
  const problem = podProblem(pod);
  if (isOver(pod)) {
    const { exitCode, reason } = ownContainer(pod)?.state?.terminated ?? {};
    const how = exitCode === undefined ? '' : ` with exit code ${exitCode}`;
    const why = pod.status?.reason ?? reason;
    return {
      reason: 'PoolPodsFail',
      message: `Pod ${name} ended${how}${why ? ` (${why})` : ''} before a session claimed it.`,
    };
  }
  if (isHopeless(pod) && problem) return problem;
  const unreachable = givenUpAt(pod, node, nodeGraceMs);
  if (unreachable !== undefined && unreachable <= now) {
    return { reason: 'PoolPodsFail', message: `The node of pod ${name} does not answer.` };
  }
  if (link?.phase === 'Foreign' || link?.phase === 'Ended') {
    return { reason: 'PoolPodsFail', message: `The runner of pod ${name} belongs to no pool.` };
  }
  const isSilent = link?.silentSince !== undefined && monotonic - link.silentSince >= silencePatience(link, world);
  if (isSilent || (link?.unreachableMs ?? 0) >= nodeGraceMs) {
    return { reason: 'PoolPodsFail', message: `The runner of pod ${name} does not answer.` };
  }
  if (now >= answersBy(world, one)) {
    return (
      problem ?? {
        reason: 'PoolPodsFail',
        message: `Pod ${name} did not start within ${DEFAULT_START_MS / 60_000} minutes.`,
      }
    );
  }
  return undefined;
}

/** Reports whether the pod was made after the pause for the failures; the time of a creation is in whole seconds, rounded down. */
function provesStart({ pod }: PoolPod, failures: PoolFailures | undefined): boolean {
  return Date.parse(pod.metadata.creationTimestamp) + 1000 > (failures?.againAt ?? 0);
}

/** The failures after this reconcile. They are over once pods start again. */
function failuresAfter(
  { now, failures }: PoolWorld,
  broken: readonly Problem[],
  areOver: boolean,
): PoolFailures | undefined {
  const [problem] = broken;
  if (!problem) return areOver ? undefined : failures;
  const count = (areOver ? 0 : (failures?.count ?? 0)) + broken.length;
  return pausedFor(count, problem, now);
}

/** Pods of a pool that could not be created or did not start: further ones are created after a pause, which doubles. */
export function pausedFor(count: number, problem: Problem, now: number): PoolFailures {
  return { count, problem, againAt: now + Math.min(FIRST_PAUSE_MS * 2 ** (count - 1), LAST_PAUSE_MS) };
}

/** Reason why the pool is not full, where it is known. */
function problemOf(failures: PoolFailures | undefined, shown: readonly PoolPod[]): Problem | undefined {
  const present = shown.map(({ pod }) => podProblem(pod)).find((problem) => problem !== undefined);
  return present ?? failures?.problem;
}
