import type { StoredPod } from '../../../core/kube/builtin.ts';
import { pods } from '../../../core/kube/resources.ts';
import {
  type StoredSession,
  type StoredTurn,
  sessionclasses,
  sessionpools,
  sessions,
} from '../../../core/resources/kinds.ts';
import { LABEL_CLASS, LABEL_INCARNATION, LABEL_SESSION_UID, poolOfPod } from '../../../core/resources/names.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import { IMPOSTOR } from '../cluster/impostors.ts';
import { runnerImage } from '../cluster/runner-image.ts';
import type { ControllerCall } from '../observer.ts';
import { CallTimes } from './call-times.ts';
import { CLASSES, type Facts, ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { Pasts } from './past.ts';
import { Terms } from './terms.ts';

const PODS = 'pods';

const sessionOf = (object: Change['object'] | undefined) => object?.metadata.labels?.[LABEL_SESSION_UID];
const isOfPool = (name: string | undefined) => name !== undefined && poolOfPod(name) !== undefined;

/**
 * A pod of a pool belongs to one session at most, for ever: to the one whose status names it for the incarnation that the
 * claim writes on it.
 */
export const claimedOnce: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage !== PODS || type !== 'MODIFIED' || !isOfPool(object.metadata.name)) return;
    const [was, is] = [sessionOf(previous), sessionOf(object)];
    if (was === is) return;
    const { name } = object.metadata;
    if (was) facts.fail('claimed once', `pod ${name} of session ${was} is given to ${is ? `session ${is}` : 'nobody'}`);
    if (!is) return;
    const { status } = facts.session(is) ?? {};
    const incarnation = Number(object.metadata.labels?.[LABEL_INCARNATION]);
    // A session that is deleted, or has gone on, takes the pod with it.
    if (status?.incarnation !== incarnation || status.podName === undefined) return;
    if (status.podName === name && status.podUID === object.metadata.uid) return;
    facts.fail(
      'claimed once',
      `pod ${name} is claimed for incarnation ${incarnation}, which has pod ${status.podName}`,
    );
  },
});

/**
 * The name of a pool's pod is never that of a later pod: logs are found by it. A creation without an answer may be sent
 * again, so only the names of those that were answered count.
 */
export const namedOnce: MakeInvariant = (facts) => {
  const made = new Set<string>();
  return {
    answered({ verb, resource, name }, error) {
      if (verb === 'create' && resource === 'pods' && !error && isOfPool(name)) made.add(name);
    },
    committed({ storage, type, object }) {
      const { name, labels } = object.metadata;
      if (storage === PODS && type === 'ADDED' && made.has(name) && !labels?.[IMPOSTOR])
        facts.fail('named once', `pod ${name} has the name of an earlier pod`);
    },
  };
};

/** A pod that a session has claimed is deleted for that session alone: neither by its pool nor for another session. */
export const keptForItsSession: MakeInvariant = (facts) => {
  /** Process and pod → the session for which the process deletes the pod; empty: for its pool. */
  const deletes = new Map<string, string>();
  return {
    answered({ process, verb, resource, uid }) {
      // A deletion that was refused says nothing of one that follows: the sweep of orphans deletes pods that no session has.
      if (verb === 'delete' && resource === 'pods') deletes.delete(`${process} ${uid}`);
    },
    gaveUp({ process, podUID, session }) {
      deletes.set(`${process} ${podUID}`, session);
    },
    committed(change) {
      const { storage, object, previous } = change;
      if (storage !== PODS || !isOfPool(object.metadata.name)) return;
      const isDeletion =
        change.type === 'DELETED' || (object.metadata.deletionTimestamp && !previous?.metadata.deletionTimestamp);
      const owner = sessionOf(previous ?? object);
      const call = facts.callBehind(change);
      if (!isDeletion || !owner || call?.verb !== 'delete') return;
      const session = deletes.get(`${call.process} ${object.metadata.uid}`);
      const name = facts.sessions.get(owner)?.metadata;
      if (session === undefined || !name || session === `${name.namespace}/${name.name}`) return;
      const whom = session === '' ? 'its pool' : `session ${session}`;
      facts.fail('kept for its session', `pod ${object.metadata.name} of session ${name.name} is deleted for ${whom}`);
    },
  };
};

/**
 * A turn that was written Running for a pod of a pool whose runner has never accepted the session is not lost with that pod, as
 * long as the process leads that has written it: only once the runner has answered, it is given the turn.
 */
export const boundFirst: MakeInvariant = (facts) => {
  /** Turn → the term in which it was written Running for its present pod. */
  const given = new Map<string, number>();
  const ofPools = new Set<string>();
  const terms = new Terms(facts);
  return {
    committed(change) {
      const { storage, type, object, previous } = change;
      if (storage === PODS && type === 'ADDED' && isOfPool(object.metadata.name))
        ofPools.add(object.metadata.uid ?? '');
      const call = facts.callBehind(change);
      if (terms.see(change, call) || storage !== TURNS || type !== 'MODIFIED' || !call) return;
      const { metadata, status } = object as unknown as StoredTurn;
      const was = (previous as unknown as StoredTurn | undefined)?.status;
      const term = terms.of(call.process);
      if (status?.phase === 'Running' && status.podUID !== was?.podUID) given.set(metadata.uid, term);
      const { podUID = '' } = was ?? {};
      const isLost =
        status?.error?.code === 'PodLost' || (status?.phase === 'Queued' && status.attempt === was?.attempt);
      if (was?.phase !== 'Running' || !isLost || given.get(metadata.uid) !== term || facts.bindings.has(podUID)) return;
      if (!ofPools.has(podUID)) return;
      facts.fail('bound first', `turn ${metadata.name} is lost with pod ${podUID}, which was never bound`);
    },
  };
};

/** Reasons for which a turn ends because a pod does not start. */
const NO_START: ReadonlySet<string | undefined> = new Set([
  'StartFailed',
  'ImageUnavailable',
  'PodConfigError',
  'Unschedulable',
]);

/** A claimed pod that never took its session costs the session nothing: neither a turn, nor a failed start, nor a pause. */
export const claimsCostNothing: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage === TURNS && type === 'MODIFIED') {
      const turn = object as unknown as StoredTurn;
      const was = (previous as unknown as StoredTurn | undefined)?.status;
      const { podName, podUID = '' } = facts.session(ownerOf(turn) ?? '')?.status ?? {};
      if (isTerminal(was?.phase) || !NO_START.has(turn.status?.error?.code)) return;
      if (!isOfPool(podName) || facts.bindings.has(podUID)) return;
      facts.fail(
        'claims cost nothing',
        `turn ${turn.metadata.name} ends as ${turn.status?.error?.code} in pod ${podName}`,
      );
    }
    if (storage !== SESSIONS || type !== 'MODIFIED') return;
    const { metadata, status } = object as unknown as StoredSession;
    const before = (previous as unknown as StoredSession | undefined)?.status;
    const { incarnation, reason } = status?.startFailures ?? {};
    if (incarnation === undefined || incarnation === before?.startFailures?.incarnation) return;
    if (incarnation !== before?.incarnation || !isOfPool(before.podName) || reason === 'ClaimLost') return;
    facts.fail('claims cost nothing', `pod ${before.podName} counts as a failed start (${reason}) of ${metadata.name}`);
  },
});

/** A session takes a pod of a pool only where it was made as the session's own would be: of its class, with the class's image. */
export const madeAlike: MakeInvariant = (facts) => {
  const images = new Pasts<string>();
  const calls = new CallTimes(facts);
  /** Class → its last change, virtual milliseconds. */
  const changedAt = new Map<string, number>();
  return {
    sent: (call) => calls.sent(call),
    answered: (call) => calls.answered(call),
    committed(change) {
      const { server, kubelets } = facts;
      if (change.storage === CLASSES) {
        changedAt.set(change.object.metadata.name, kubelets.now);
        for (const { metadata, spec } of server.list(sessionclasses))
          images.becomes(metadata.name, spec.image ?? '', kubelets.now);
      }
      if (change.storage !== SESSIONS || change.type !== 'MODIFIED') return;
      const session = change.object as unknown as StoredSession;
      const before = (change.previous as unknown as StoredSession | undefined)?.status?.podName;
      const { podName } = session.status ?? {};
      if (!isOfPool(podName) || podName === before) return;
      const pod = server.get(pods, session.metadata.namespace, podName as string);
      const call = facts.callBehind(change);
      if (!pod || !call) return;
      const fail = (why: string) =>
        facts.fail('made alike', `session ${session.metadata.name} takes pod ${podName}, which ${why}`);
      const ofClass = pod.metadata.labels?.[LABEL_CLASS];
      if (ofClass !== session.spec.class) fail(`is of class ${ofClass}`);
      const byDefault = runnerImage(facts.protocols.get(call.process) ?? 0);
      // The reconcile may have created the session's turn first, or have taken its turns in.
      const agoMs = calls.decidedWithin(call, session, changedAt.get(session.spec.class) ?? 0);
      const known = images.since(session.spec.class, facts.knewUntil(call, ['sessionclasses'], agoMs));
      const [{ image = '' } = { image: '' }] = pod.spec.containers;
      if (!known.map((one) => one || byDefault).includes(image)) fail(`has image ${image}`);
    },
  };
};

/** What a call does with a pool's pods; undefined: nothing. */
function poolAct(facts: Facts, { verb, resource, name, object, namespace }: ControllerCall): string | undefined {
  if (resource === 'pods' && isOfPool(name)) {
    if (verb === 'create') return `creates pod ${name}`;
    const pod = facts.server.get(pods, namespace, name);
    if (verb === 'delete' && pod && sessionOf(pod as unknown as Change['object']) === '') return `deletes pod ${name}`;
    if (verb === 'patch') return `claims pod ${name}`;
  }
  if (resource !== 'sessions' || verb !== 'replace') return undefined;
  const { podName } = (object as StoredSession).status ?? {};
  const before = facts.server.get(sessions, namespace, name)?.status?.podName;
  return isOfPool(podName) && podName !== before ? `takes pod ${podName}` : undefined;
}

/**
 * Leaders keep pools one after the other: nothing that an earlier leader does with a pool's pods takes effect after a later
 * one has begun to.
 */
export const onePoolKeeper: MakeInvariant = (facts) => {
  const terms = new Terms(facts);
  const acts: { process: string; number: number; what: string }[] = [];
  const calls = new Map<ControllerCall, string>();
  return {
    sent(call) {
      const what = poolAct(facts, call);
      if (what === undefined || terms.of(call.process) === 0) return;
      calls.set(call, what);
      acts.push({ process: call.process, number: terms.of(call.process), what });
    },
    committed(change) {
      const call = facts.callBehind(change);
      if (terms.see(change, call)) return;
      const what = call && calls.get(call);
      if (!what) return;
      const later = acts.find((one) => one.number > terms.of(call.process) && one.process !== call.process);
      if (later) facts.fail('one pool keeper', `${call.process} ${what} after ${later.process} ${later.what}`);
    },
  };
};

/** Reasons with which a pool that is not full has come to rest. */
const RESTS = new Set([
  'PoolFull',
  'PoolTooLarge',
  'PoolAtCapacity',
  'ClassNotFound',
  'InvalidSpec',
  'NotAllowed',
  'ClassInvalid',
]);

/** Returns what is still to be done for pools; empty once everything has settled. */
export function unsettledPools(facts: Facts): string[] {
  const left: string[] = [];
  const { server } = facts;
  const unclaimed = server.list(pods).filter((pod) => isUnclaimed(pod));
  for (const { metadata, spec, status } of server.list(sessionpools)) {
    const name = `pool ${metadata.namespace}/${metadata.name}`;
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    const own = unclaimed.filter((pod) => poolOfPod(pod.metadata.name) === metadata.uid);
    if (status?.observedGeneration !== metadata.generation)
      left.push(`${name}: generation ${metadata.generation} is not observed`);
    else if (!RESTS.has(ready?.reason ?? '')) left.push(`${name} is ${ready?.reason}`);
    else if (own.some((pod) => pod.metadata.deletionTimestamp)) left.push(`${name} has terminating pods`);
    else if (own.length !== status?.replicas)
      left.push(`${name} has ${own.length} pods and tells of ${status?.replicas}`);
    else if (ready?.reason === 'PoolFull' && own.length !== spec.replicas) left.push(`${name} has ${own.length} pods`);
  }
  const uids = new Set(server.list(sessionpools).map(({ metadata }) => metadata.uid));
  for (const { metadata } of unclaimed) {
    if (!uids.has(poolOfPod(metadata.name) ?? '')) left.push(`pod ${metadata.name} belongs to no pool`);
  }
  return left;
}

const isUnclaimed = ({ metadata }: StoredPod) => metadata.labels?.[LABEL_SESSION_UID] === '';
