import { pods } from '../../../core/kube/resources.ts';
import type { StoredSession, StoredTurn } from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import type { ControllerCall } from '../observer.ts';
import { ANY_IMAGE } from '../users/users.ts';
import { CLOCK_MS } from './clocks.ts';
import { type Facts, ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/** Reasons of a session's condition Ready that tell of no problem. */
const NO_PROBLEM: ReadonlySet<string> = new Set([
  'Starting',
  'Ready',
  'Running',
  'AwaitingApproval',
  'Suspending',
  'Suspended',
  'Preempted',
  'Held',
  'Terminating',
  // A new leader does not know what is taken, and will; it tells no turn before it has settled.
  'CapacityUnknown',
]);
/** Reasons that a turn has of its own, whatever the session's are. */
const OWN: ReadonlySet<string | undefined> = new Set([
  'Held',
  'GroupLimit',
  'CapacityUnknown',
  'Retrying',
  'StoreShareUsed',
]);

/** Time after a lost attempt in which a turn waits for its next one; see controller/status/turn-status.ts. */
const RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;

/** Reports whether the session's pods have no runner. */
const isAnyImage = (facts: Facts, turn: StoredTurn) =>
  facts.sessions.get(ownerOf(turn) ?? '')?.spec.class === ANY_IMAGE;

/**
 * A turn says that it runs only once the runner of its pod has answered the controller that says so. A turn of any image is
 * given with its pod. Once it was said that the pod has not started, the turn runs again when the pod has.
 */
export const runsInTruth: MakeInvariant = (facts) => {
  /** Pod and controller process that has had a message of the pod's runner. */
  const answered = new Set<string>();
  const started = new Set<string>();
  return {
    heard({ podUID }, { process }) {
      answered.add(`${podUID} ${process}`);
    },
    runStarted({ podUID }) {
      started.add(podUID);
    },
    committed(change) {
      const { storage, type, object, previous } = change;
      if (storage !== TURNS || type !== 'MODIFIED') return;
      const turn = object as unknown as StoredTurn;
      const was = (previous as unknown as StoredTurn | undefined)?.status;
      const { phase, podUID = '' } = turn.status ?? {};
      const call = facts.callBehind(change);
      if (phase !== 'Running' || was?.phase === 'Running' || !call) return;
      const fail = (what: string) =>
        facts.fail('runs in truth', `turn ${turn.metadata.name} says that it runs: ${what}`);
      if (!isAnyImage(facts, turn)) {
        if (!answered.has(`${podUID} ${call.process}`)) fail(`the runner of pod ${podUID} has not answered`);
      } else if (was?.podUID === podUID && !started.has(podUID) && !facts.kubelets.container(podUID))
        fail(`pod ${podUID} has not started`);
    },
  };
};

/**
 * When a controller writes that a session has a problem, the first turn that waits for it has been told the same: the
 * controller either has written it, or knows that it was. A turn that is tried again later waits for that first.
 */
export const oneStory: MakeInvariant = (facts) => {
  /** Turn uid → the calls that wrote it, the one of its present version last; empty when no controller wrote that. */
  const writers = new Map<string, ControllerCall[]>();
  /** Calls whose answer has reached their controller. A controller whose answer was lost knows of its write only from its watch. */
  const acknowledged = new WeakSet<ControllerCall>();
  /**
   * Sessions of which a turn was deleted, and the version of that. A controller that was not shown it takes another turn for
   * the first. The first write after it was may have been decided before, and is followed by the next decision.
   */
  const changed = new Map<string, number>();
  return {
    answered(call, error) {
      if (!error) acknowledged.add(call);
    },
    committed(change) {
      const { storage, type, object, version } = change;
      const { uid = '' } = object.metadata;
      const call = facts.callBehind(change);
      if (storage === TURNS) {
        if (call && type !== 'DELETED') writers.set(uid, [...(writers.get(uid) ?? []), call]);
        else writers.delete(uid);
        if (object.metadata.deletionTimestamp || type === 'DELETED')
          changed.set(ownerOf(object as unknown as StoredTurn) ?? '', version);
      }
      if (storage !== SESSIONS || type !== 'MODIFIED' || !call) return;
      const changedAt = changed.get(uid);
      if (changedAt !== undefined) {
        if (call.knew('turns') >= changedAt) changed.delete(uid);
        return;
      }
      const { metadata, status } = object as unknown as StoredSession;
      const ready = status?.conditions?.find((condition) => condition.type === 'Ready');
      if (ready?.status !== 'False' || NO_PROBLEM.has(ready.reason) || status?.phase === 'Finished') return;
      const turn = firstOf(facts, uid);
      if (!turn || !isWaiting(facts, turn) || isRetried(facts, turn)) return;
      const isKnown = Number(turn.metadata.resourceVersion) <= call.knew('turns');
      const calls = writers.get(turn.metadata.uid) ?? [];
      const written = calls.at(-1);
      const isOwn = written?.process === call.process;
      if (!isKnown && !(isOwn && acknowledged.has(written))) return;
      // While two controllers lead, the other one may tell the turn anew between what this one decided and its write.
      if (!isOwn && calls.some(({ process }) => process === call.process)) return;
      const told = turn.status?.conditions?.find((condition) => condition.type === 'Finished')?.reason;
      if (turn.status?.phase === 'Queued' && (told === ready.reason || OWN.has(told))) return;
      const [is, says] = [`session ${metadata.name} is ${ready.reason}`, `${turn.status?.phase}/${told}`];
      facts.fail('one story', `${is}, and its turn ${turn.metadata.name} says ${says}`);
    },
  };
};

/** Returns the session's first turn that has not ended, if its order is known. */
function firstOf(facts: Facts, session: string): StoredTurn | undefined {
  const live = facts
    .turnsOf(session)
    .filter(({ metadata, status }) => !isTerminal(status?.phase) && !metadata.deletionTimestamp);
  const index = ({ status }: StoredTurn) => status?.index ?? Number.MAX_SAFE_INTEGER;
  const [first] = live.toSorted((a, b) => index(a) - index(b));
  return first?.status?.index === undefined ? undefined : first;
}

/** Reports whether the turn has been begun before and is not tried again yet, whatever its session waits for. */
function isRetried({ server }: Facts, { status: { attempt = 0, conditions } = {} }: StoredTurn): boolean {
  const lostAt = conditions?.find(({ type }) => type === 'Running')?.lastTransitionTime;
  if (attempt === 0 || lostAt === undefined) return false;
  return server.clock.now() < Date.parse(lostAt) + Math.min(RETRY_MS * 2 ** (attempt - 1), MAX_RETRY_MS) + CLOCK_MS;
}

/** Reports whether the turn waits for a pod that starts, and will go on waiting. */
function isWaiting(facts: Facts, turn: StoredTurn): boolean {
  const { phase, podUID } = turn.status ?? {};
  if (phase === 'AwaitingApproval' || turn.spec.cancel) return false;
  if (podUID === undefined) return true;
  // The end of a turn whose pod may have begun it is told once the pod is gone.
  const pod = facts.server.list(pods).find(({ metadata }) => metadata.uid === podUID);
  if (!isAnyImage(facts, turn) || !pod || pod.metadata.deletionTimestamp) return false;
  return !facts.kubelets.container(podUID);
}
