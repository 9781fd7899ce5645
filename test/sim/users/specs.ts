import { BAD_ENDS, type BadEnd, type Plan } from '../cluster/agent.ts';
import type { Dice } from '../random.ts';
import { someFiles } from './files.ts';
import { ANY_IMAGE, CLASSES, environmentOf, type Users } from './users.ts';

/** Random sessions, limits and turns that users ask for. */

export const TIERS = ['gold', 'iron'] as const;

/** Draws an administrator's limits for a class. */
export function someLimits(dice: Dice) {
  const few = () => dice.int(1, 3);
  const tiers = dice.chance(0.4) ? [{ selector: { matchLabels: { tier: dice.pick(TIERS) } }, maxRunning: few() }] : [];
  const all = dice.chance(0.2) ? [{ selector: {}, maxRunning: few() }] : [];
  return {
    limits: { maxRunning: dice.chance(0.5) ? few() : null, namespaces: [...tiers, ...all] },
    minIdle: dice.chance(0.3) ? 1 : 0,
    approvalWindow: `${dice.int(5, 40)}s`,
  };
}

/** Draws a class's default timeouts, maximum timeouts that may refuse a session's own, and an invalid pattern. */
export function someRules(dice: Dice) {
  const some = (probability: number, from: number, to: number) =>
    dice.chance(probability) ? `${dice.int(from, to)}s` : null;
  return {
    timeouts: { stall: some(0.5, 2, 10), approval: some(0.5, 3, 60), persist: some(0.5, 3, 60) },
    maxTimeouts: { turn: some(0.1, 5, 60), approval: some(0.1, 3, 60) },
    redact: dice.chance(0.2) ? ['(a+)+b'] : null,
  };
}
/** Patch that removes the rules which can keep sessions from running. */
export const NO_RULES = { maxTimeouts: null, redact: null };

/** Every sixth session has an image that knows nothing of Berth. */
const RUNNERLESS_EVERY = 6;

/** Draws a session; `number` is that of the deed. */
export function someSession(users: Users, number: number): object {
  const sessionClass = users.dice.pick(CLASSES);
  const session = aSession(users, number);
  if (users.onlyAnyImage !== true && number % RUNNERLESS_EVERY !== 0) {
    const files = users.files ? someFiles(users.files) : [];
    const environment = users.environments?.chance(0.5) ? { environment: environmentOf(sessionClass) } : {};
    return { class: sessionClass, ...environment, ...(files.length > 0 ? { agent: { files } } : {}), ...session };
  }
  const { persistence: _, timeouts, ...rest } = session;
  const { stall: __, ...others } = timeouts as typeof timeouts & { stall?: string };
  return { class: ANY_IMAGE, ...rest, timeouts: others };
}

/** Draws the spec of a session, without its class. */
function aSession(users: Users, number: number) {
  const { dice, groupLimit, session } = users;
  const one = dice.chance(0.2);
  const forgetful = dice.chance(0.1);
  const when = <T extends object>(probability: number, fields: T) => (dice.chance(probability) ? fields : {});
  return {
    ...(one ? { turns: 'One' } : {}),
    ...(one || dice.chance(0.3) ? { input: aPlan(users) } : {}),
    ...when(0.1, { suspend: true }),
    ...when(0.1, { suspendRequest: `r${number}` }),
    ...when(0.3, { priority: dice.int(-3, 3) }),
    ...when(0.3, { concurrencyGroup: { name: 'group', limit: groupLimit + (dice.chance(0.2) ? 1 : 0) } }),
    ...(users.sharing?.chance(0.8) ? { concurrencyGroup: { name: 'group', limit: groupLimit } } : {}),
    ...(forgetful ? { persistence: { state: false } } : whatIsKept(dice)),
    ...someHistory(dice),
    ...when(0.2, { ttlAfterFinished: `${dice.int(2, 60)}s` }),
    ...when(0.1, { ttlAfterSuspended: `${dice.int(2, 60)}s` }),
    timeouts: {
      start: `${dice.int(20, 120)}s`,
      turn: `${dice.int(5, 60)}s`,
      ...when(0.6, { idle: `${dice.int(3, 40)}s` }),
      ...when(0.3, { stall: `${dice.int(2, 10)}s` }),
      ...when(0.4, { approval: `${dice.int(3, 60)}s` }),
      ...when(0.4, { persist: `${dice.int(3, 60)}s` }),
      ...when(forgetful ? 1 : 0.1, { lifetime: `${dice.int(10, 150)}s` }),
    },
    ...session,
  };
}

function whatIsKept(dice: Dice) {
  const workspace = dice.chance(0.1) ? { workspace: { type: 'Volume', size: '1Gi' } } : {};
  const most = dice.chance(0.1) ? { maxState: `${dice.int(10_000, 25_000)}` } : {};
  return { persistence: { ...workspace, ...most } };
}

export const someHistory = (dice: Dice) => (dice.chance(0.4) ? { history: { turns: dice.int(1, 4) } } : {});

const WAYS = ['Alive', 'Ended'] as const;

export function aPlan({ dice, artifacts, writing }: Users): Plan {
  return {
    ...(writing ? { writesEveryMs: writing.skewed(50, 5000) } : {}),
    ...(dice.chance(0.97) ? { ms: dice.skewed(5, dice.chance(0.1) ? 60_000 : 4000) } : {}),
    output: dice.chance(0.1) ? dice.int(15_000, 40_000) : dice.skewed(1, 3000),
    ...(dice.chance(0.7) ? { state: dice.chance(0.3) ? dice.int(7_000, 30_000) : dice.skewed(1, 6000) } : {}),
    ...(dice.chance(0.3) ? { log: dice.skewed(4, 12_000) } : {}),
    ...(dice.chance(0.15) ? { ends: dice.pick(Object.keys(BAD_ENDS) as BadEnd[]) } : {}),
    ...(dice.chance(0.1) ? { stubborn: true } : {}),
    ...(dice.chance(0.2) ? { talksMs: dice.skewed(200, 3000) } : {}),
    ...(dice.chance(0.2) ? { asks: Array.from({ length: dice.int(1, 3) }, () => dice.pick(WAYS)) } : {}),
    ...(dice.chance(0.1) ? { touchAfterMs: dice.skewed(100, 30_000) } : {}),
    ...(artifacts.chance(0.3)
      ? { leaves: Array.from({ length: artifacts.int(1, 3) }, () => artifacts.skewed(1, 6000)) }
      : {}),
  };
}
