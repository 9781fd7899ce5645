import { DEFAULT_TIMEOUTS, DEFAULT_TTL } from '../../core/resources/defaults.ts';
import { formatDuration, parseDuration } from '../../core/resources/duration.ts';
import type { StoredSession, StoredTurn } from '../../core/resources/kinds.ts';
import type { Condition } from '../../core/resources/schema.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';

/** What blocks a session, since when, and what happens next: read from its status and conditions alone. */

export interface WhyFacts {
  session: StoredSession;
  /** Turns of the session, in their order. */
  turns: StoredTurn[];
  /** Its class; undefined where the caller may not read it. */
  allowed: SessionClassSpec | undefined;
  /** Name of the program, for commands in the text. */
  cliName: string;
  /** Milliseconds since the epoch. */
  now: number;
}

export interface Explanation {
  /** One sentence. */
  headline: string;
  /** Why, as reason and message. */
  because?: string;
  /** Start of the present state, RFC 3339. */
  since?: string;
  /** What happens next without anybody's help. */
  next: string;
  /** When that happens at the latest, milliseconds since the epoch. */
  at?: number;
  /** What a person can do. */
  act: string[];
  /** Further problems that do not block the session. */
  also: string[];
}

/** Explains the present state of a session. */
export function explain(facts: WhyFacts): Explanation {
  const { session, turns } = facts;
  const { metadata, spec, status = {} } = session;
  const { name } = metadata;
  const of = (type: string) => status.conditions?.find((condition) => condition.type === type);
  const live = turns.filter((turn) => !isTerminal(turn.status?.phase));
  const also = alsoOf(session);
  const waiting = live.find(({ status }) => status?.phase === 'AwaitingApproval');
  const running = live.find(({ status }) => status?.phase === 'Running');

  if (metadata.deletionTimestamp) {
    const next = 'its pod ends; then the session and all that belongs to it are gone';
    return { headline: `${name} is being deleted`, since: metadata.deletionTimestamp, next, act: [], also };
  }
  if (!status.conditions) {
    return {
      headline: `${name} has not been seen by a controller`,
      since: metadata.creationTimestamp,
      next: 'nothing, until Berth’s controller runs in this cluster and serves this namespace',
      act: ['kubectl get pods --all-namespaces --selector app.kubernetes.io/name=berth'],
      also,
    };
  }
  if (status.phase === 'Finished') return finished(facts, of('Finished'), also);
  if (waiting) return asks(facts, waiting, also);
  if (running && of('Ready')?.status === 'True') return runs(facts, running, live.length - 1, also);
  if (spec.suspend) return held(facts, of('Suspended') ?? of('Admitted'), live.length, also);
  if (status.phase === 'Suspending') {
    const { message, lastTransitionTime } = of('Suspended') ?? {};
    return {
      headline: `${name} is being suspended`,
      ...(message ? { because: message } : {}),
      ...(lastTransitionTime ? { since: lastTransitionTime } : {}),
      next:
        live.length > 0 ? 'its pod ends; then a waiting turn starts it again' : 'its state is stored and its pod ends',
      act: [],
      also,
    };
  }
  if (status.queue) return queued(facts, of('Admitted'), also);
  const ready = of('Ready');
  if (ready?.status === 'True') return isReady(facts, live, also);
  if (status.startFailures) return failsToStart(facts, live.length, also);
  if (live.length === 0 && status.podName === undefined) return rests(facts, of('Suspended') ?? ready, also);
  return starts(facts, ready, live, also);
}

/** Formats an explanation; every fact is one line. */
export function whyText({ headline, because, since, next, at, act, also }: Explanation, now: number): string {
  const lines: [string, string | undefined][] = [
    ['because', because],
    ['since', since && `${since} (${formatDuration(Math.max(0, now - Date.parse(since)))} ago)`],
    ['next', next],
    ['at', at === undefined ? undefined : whenText(at, now)],
    ...act.map((text, i): [string, string] => [i === 0 ? 'to act' : '', text]),
    ...also.map((text): [string, string] => ['also', text]),
  ];
  const body = lines.flatMap(([label, text]) => (text ? [`  ${label.padEnd(9)}${text.replace(/\s+/g, ' ')}\n`] : []));
  return `${headline}\n${body.join('')}`;
}

function whenText(at: number, now: number): string {
  const time = new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
  return at > now ? `${time} (in ${formatDuration(at - now)})` : `${time} (now due)`;
}

const reasonOf = ({ reason, message }: Pick<Condition, 'reason' | 'message'>) => `${reason}: ${message}`;
const turnsText = (count: number) => (count === 1 ? 'its waiting turn' : `its ${count} waiting turns`);

function finished({ session, allowed }: WhyFacts, condition: Condition | undefined, also: string[]): Explanation {
  const { spec, metadata } = session;
  const ttl = spec.ttlAfterFinished ?? allowed?.ttlAfterFinished ?? DEFAULT_TTL.finished[spec.turns];
  return {
    headline: `${metadata.name} is finished: nothing blocks it, and it takes no turn`,
    ...timed(condition),
    next: 'it is deleted',
    // The session that has built an Environment is kept as long as the environment is.
    ...(condition && !spec.build ? later(condition.lastTransitionTime, ttl) : {}),
    act: [],
    also,
  };
}

function asks({ session, cliName }: WhyFacts, turn: StoredTurn, also: string[]): Explanation {
  const { approval, granted } = turn.status ?? {};
  const { name } = session.metadata;
  return {
    headline: `${name} waits for a decision on turn ${turn.metadata.name}`,
    ...(approval ? { because: approval.prompt, since: approval.since } : {}),
    next: `without a decision turn ${turn.metadata.name} fails as ApprovalTimeout`,
    ...(approval ? later(approval.since, granted?.approval ?? DEFAULT_TIMEOUTS.approval) : {}),
    act: [`${cliName} approve ${name} [--deny]`],
    also,
  };
}

function runs({ session, cliName }: WhyFacts, turn: StoredTurn, behind: number, also: string[]): Explanation {
  const { startedAt, granted, conditions, approval } = turn.status ?? {};
  const since = startedAt ?? conditions?.find(({ type }) => type === 'Running')?.lastTransitionTime;
  const { name } = session.metadata;
  // The time of a wait for an approval does not count, and is not recorded.
  const limit = approval ? undefined : (granted?.timeout ?? DEFAULT_TIMEOUTS.turn);
  return {
    headline: `${name} runs turn ${turn.metadata.name}: nothing blocks it`,
    ...(since ? { since } : {}),
    next: `the turn ends, or is stopped as TurnTimedOut${behind > 0 ? `; ${behind} ${behind === 1 ? 'turn waits' : 'turns wait'} behind it` : ''}`,
    ...(since && limit ? later(since, limit) : {}),
    act: [`${cliName} logs -f ${name}`, `${cliName} cancel ${name}`],
    also,
  };
}

function held(
  { session, cliName }: WhyFacts,
  condition: Condition | undefined,
  count: number,
  also: string[],
): Explanation {
  const { name } = session.metadata;
  return {
    headline: `${name} is held (spec.suspend): ${count > 0 ? `${turnsText(count)} must wait` : 'its turns will wait'}`,
    ...(condition ? { since: condition.lastTransitionTime } : {}),
    next: 'nothing, until it is resumed',
    act: [`${cliName} resume ${name}`],
    also,
  };
}

function queued({ session, now }: WhyFacts, condition: Condition | undefined, also: string[]): Explanation {
  const { queue } = session.status ?? {};
  const { reason = '', since = '', position, holders = [] } = queue ?? {};
  const place = position === undefined ? '' : `; it is number ${position} in the queue`;
  const message = condition?.reason === reason ? condition.message : '';
  const holding = holders
    .filter(({ name }) => !message.includes(name))
    .map(({ name, since }) => `${name} (for ${formatDuration(now - Date.parse(since))})`)
    .join(', ');
  return {
    headline: `${session.metadata.name} waits in the queue`,
    because: [message ? `${reason}: ${message}` : reason, holding && `Slots are held by ${holding}.`]
      .filter(Boolean)
      .join(' '),
    since,
    next: `it starts once ${reason === 'AtCapacity' ? 'a slot becomes free' : 'that has changed'}${place}`,
    act: [],
    also,
  };
}

function isReady({ session, allowed }: WhyFacts, live: StoredTurn[], also: string[]): Explanation {
  const { spec, status = {}, metadata } = session;
  const [first] = live;
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  if (first) {
    const wait = first.status?.conditions?.find(({ type }) => type === 'Finished');
    return {
      headline: `${metadata.name} is ready, and turn ${first.metadata.name} waits`,
      ...(wait ? timed(wait) : { since: first.metadata.creationTimestamp }),
      next: 'the session takes the turn',
      act: [],
      also,
    };
  }
  const idle = atMost(
    spec.timeouts?.idle ?? allowed?.timeouts?.idle ?? DEFAULT_TIMEOUTS.idle,
    allowed?.maxTimeouts?.idle,
  );
  return {
    headline: `${metadata.name} is ready: nothing blocks it, and no turn waits`,
    ...(ready ? { since: ready.lastTransitionTime } : {}),
    next: 'it takes the next turn at once; without one it is suspended',
    ...(status.lastActiveAt ? later(status.lastActiveAt, idle) : {}),
    act: [],
    also,
  };
}

function failsToStart({ session, cliName }: WhyFacts, count: number, also: string[]): Explanation {
  const { startFailures } = session.status ?? {};
  const { reason = '', message = '', since = '', count: failures = 0 } = startFailures ?? {};
  const { name } = session.metadata;
  return {
    headline: `${name} cannot start: ${failures} ${failures === 1 ? 'start has' : 'starts have'} failed`,
    because: `${reason}: ${message}`,
    since,
    next:
      count > 0 ? 'it is started again, after a pause that grows with each failure' : 'its next turn starts it again',
    act: [`${cliName} get ${name}`],
    also,
  };
}

function rests({ session, allowed }: WhyFacts, condition: Condition | undefined, also: string[]): Explanation {
  const { spec, metadata } = session;
  const ttl = spec.ttlAfterSuspended ?? allowed?.ttlAfterSuspended ?? DEFAULT_TTL.suspended;
  const isSuspended = condition?.type === 'Suspended' && condition.status === 'True';
  return {
    headline: isSuspended
      ? `${metadata.name} is suspended: nothing blocks it, and no turn waits`
      : `${metadata.name} has no pod, and no turn waits`,
    ...timed(condition),
    next: isSuspended ? 'its next turn wakes it; without one it is deleted' : 'its next turn starts it',
    ...(isSuspended ? later(condition.lastTransitionTime, ttl) : {}),
    act: [],
    also,
  };
}

function starts(
  { session, allowed }: WhyFacts,
  ready: Condition | undefined,
  live: StoredTurn[],
  also: string[],
): Explanation {
  const { spec, status = {}, metadata } = session;
  const isStarting = ready?.reason === 'Starting' || ready === undefined;
  const [first] = live;
  // A pod's time to start begins with the pod, so after the session's admission.
  const admitted = status.conditions?.find(({ type, status }) => type === 'Admitted' && status === 'True');
  const own = spec.timeouts?.start ?? allowed?.timeouts?.start ?? DEFAULT_TIMEOUTS.start;
  const start = first?.status?.granted?.start ?? atMost(own, allowed?.maxTimeouts?.start);
  const then = first ? `turn ${first.metadata.name} runs` : 'it takes turns';
  return {
    headline: isStarting ? `${metadata.name} is starting` : `${metadata.name} cannot take a turn`,
    ...timed(ready),
    next: admitted
      ? `${then} once that is over; otherwise the start fails as StartFailed`
      : `${then} once that is over`,
    ...(admitted ? later(admitted.lastTransitionTime, start) : {}),
    act: [],
    also,
  };
}

/** Problems that do not block the session. */
function alsoOf({ status = {} }: StoredSession): string[] {
  const of = (type: string) => status.conditions?.find((condition) => condition.type === type);
  const stored = of('StatePersisted');
  const outdated = of('Outdated');
  const hidden = of('SecretsHidden');
  const enterable = of('Enterable');
  return [
    ...(stored?.status === 'False' && !['NoState', 'PersistenceOff'].includes(stored.reason) ? [stored] : []),
    ...(outdated?.status === 'True' ? [outdated] : []),
    ...(hidden?.status === 'False' ? [hidden] : []),
    ...(enterable?.status === 'False' ? [enterable] : []),
  ].map(reasonOf);
}

const timed = (condition: Condition | undefined): Pick<Explanation, 'because' | 'since'> =>
  condition ? { because: reasonOf(condition), since: condition.lastTransitionTime } : {};

const later = (since: string, duration: string): { at: number } => ({
  at: Date.parse(since) + parseDuration(duration),
});

const atMost = (wanted: string, ceiling: string | undefined): string =>
  ceiling !== undefined && parseDuration(ceiling) < parseDuration(wanted) ? ceiling : wanted;
