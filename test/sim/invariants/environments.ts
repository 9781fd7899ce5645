import { isDeepStrictEqual } from 'node:util';
import type { EnvironmentStatus } from '../../../core/resources/environment.ts';
import {
  environments,
  type StoredEnvironment,
  type StoredSession,
  type StoredTurn,
} from '../../../core/resources/kinds.ts';
import { isTerminal } from '../../../core/resources/turn-phases.ts';
import type { Change } from '../../../local/apiserver/store/versioned.ts';
import { storageOf } from '../api/server.ts';
import { CLOCK_MS } from './clocks.ts';
import { ownerOf, SESSIONS, TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';
import { Pasts } from './past.ts';

const ENVIRONMENTS = storageOf(environments);
/** Builds after which an environment counts as failed although its cause may pass. */
const ATTEMPTS = 4;
const PASSING: ReadonlySet<string> = new Set([
  'IndexUnreachable',
  'TurnDeleted',
  'PodLost',
  'Evicted',
  'ImageUnavailable',
  'Unschedulable',
]);
/** Longest time from what a reconcile sees to its last write, by the controller's clock; its calls take some of it. */
const RECONCILE_MS = 15_000;

interface BuildInput {
  requirements: string[];
}

const isInput = (input: unknown): input is BuildInput =>
  Array.isArray((input as Partial<BuildInput> | undefined)?.requirements);

const keyOf = (namespace: string | undefined, name: string | undefined) => `${namespace}/${name}`;

/**
 * An incarnation takes an environment that was built from the requirements of the session's Environment, or keeps the one
 * before; and its agent runs in the environment that it took.
 */
export const givenEnvironment: MakeInvariant = (facts) => {
  /** Environment → its requirements, as JSON; undefined while there is none. */
  const asked = new Pasts<string | undefined>();
  const requirementsOf = (build: string | undefined) => {
    const turn = [...facts.turns.values()].find((one) => ownerOf(one) === build && isInput(one.spec.input));
    // A build that installs the packages of an earlier one names their versions.
    return turn && JSON.stringify((turn.spec.input as BuildInput).requirements.map((each) => each.split('==')[0]));
  };
  return {
    committed(change) {
      const { storage, type, object, previous } = change;
      const { namespace, name } = object.metadata;
      if (storage === ENVIRONMENTS) {
        const { spec } = object as unknown as StoredEnvironment;
        const requirements = type === 'DELETED' ? undefined : JSON.stringify(spec.requirements);
        asked.becomes(keyOf(namespace, name), requirements, facts.kubelets.now);
      }
      if (storage !== SESSIONS || type !== 'MODIFIED') return;
      const { spec, status } = object as unknown as StoredSession;
      const was = (previous as unknown as StoredSession | undefined)?.status;
      const { archive } = status?.environment ?? {};
      const call = facts.callBehind(change);
      if (!archive || !call || archive.sessionUID === was?.environment?.archive.sessionUID) return;
      const wanted = asked.since(
        keyOf(namespace, spec.environment?.name),
        facts.knewUntil(call, ['environments'], RECONCILE_MS),
      );
      const requirements = requirementsOf(archive.sessionUID);
      if (!requirements || !wanted.includes(requirements))
        facts.fail('given environment', `session ${name} takes an environment of ${requirements}, and wants ${wanted}`);
    },
    runStarted({ sessionUID, incarnation, podUID, environment, isRunnerless }) {
      const session = facts.session(sessionUID);
      if (!session?.spec.environment || isRunnerless || session.status?.incarnation !== incarnation) return;
      const built = facts.turns.get(environment?.split('/')[0] ?? '');
      const recorded = session.status.environment?.archive.sessionUID;
      if (built && ownerOf(built) === recorded) return;
      const has = built ? `an environment that session ${ownerOf(built)} built` : 'no environment';
      facts.fail(
        'given environment',
        `the agent of ${session.metadata.name} in pod ${podUID} has ${has}, not ${recorded}`,
      );
    },
  };
};

/** An environment is built only where a session needs it, and what was built is not deleted as long as it is shown. */
export const builtWhenNeeded: MakeInvariant = (facts) => {
  /** Session → the Environment that it names, until it is deleted. */
  const named = new Pasts<string | undefined>();
  const shown = new Pasts<EnvironmentStatus | undefined>();
  /** Controller and build → the time up to which it knew the world when it last said that the build begins. */
  const saidAt = new Map<string, number>();
  return {
    sent(call) {
      if (call.resource !== 'environments' || call.verb !== 'replace') return;
      const { status } = call.object as unknown as StoredEnvironment;
      const key = `${call.process} ${call.namespace}/${status?.build}`;
      saidAt.set(key, facts.knewUntil(call, ['sessions', 'environments']));
    },
    committed(change) {
      const { storage, type, object } = change;
      const { namespace, name, uid = '' } = object.metadata;
      const now = facts.kubelets.now;
      if (storage === ENVIRONMENTS) {
        const { status } = object as unknown as StoredEnvironment;
        shown.becomes(keyOf(namespace, name), type === 'DELETED' ? undefined : status, now);
      }
      if (storage !== SESSIONS) return;
      const session = object as unknown as StoredSession;
      const environment = session.spec.environment?.name;
      if (environment) named.becomes(uid, type === 'DELETED' ? undefined : keyOf(namespace, environment), now);
      const call = facts.callBehind(change);
      if (!session.spec.build || !call) return;
      const knewUntil =
        saidAt.get(`${call.process} ${namespace}/${name}`) ?? facts.knewUntil(call, ['sessions', 'environments']);
      if (type === 'ADDED' && !neededSince(session, knewUntil))
        facts.fail('built when needed', `${call.process} has session ${name} build what no session needs`);
    },
    called(call) {
      if (call.verb !== 'delete' || call.resource !== 'sessions') return;
      const session = [...facts.sessions.values()].find(
        ({ metadata }) => metadata.uid === call.uid && facts.session(metadata.uid) !== undefined,
      );
      if (!session?.spec.build) return;
      const knewUntil = facts.knewUntil(call, ['environments']);
      const isShown = [...shown.everBeenSuchThat((status) => status?.archive?.sessionUID === call.uid, knewUntil)];
      const always = isShown.filter((key) =>
        shown.since(key, knewUntil).every((status) => status?.archive?.sessionUID === call.uid),
      );
      if (always.length > 0)
        facts.fail('built when needed', `${call.process} deletes session ${call.name}, the archive of ${always}`);
    },
  };

  function neededSince({ metadata: { namespace, name } }: StoredSession, since: number): boolean {
    return [...named.everBeenSuchThat((key) => key !== undefined, since)].some((uid) =>
      named.since(uid, since).some((key) => {
        if (!key?.startsWith(`${namespace}/`)) return false;
        return shown.since(key, since).some((status) => status?.build === name);
      }),
    );
  }
};

/** Checks that another build of an environment installs exactly the packages of the one before. */
export const builtAlike: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage !== ENVIRONMENTS || type !== 'MODIFIED') return;
    const { status } = object as unknown as StoredEnvironment;
    const was = (previous as unknown as StoredEnvironment | undefined)?.status;
    if (!was?.packages || was.hash !== status?.hash || isDeepStrictEqual(was.packages, status?.packages)) return;
    const told = (packages: EnvironmentStatus['packages']) =>
      packages?.map(({ name, version }) => `${name} ${version}`);
    facts.fail(
      'built alike',
      `environment ${object.metadata.name} has ${told(status?.packages)}, and had ${told(was.packages)}`,
    );
  },
});

/** A turn ends for want of an environment only where that cannot be built, or was not there. */
export const awaitedEnvironment: MakeInvariant = (facts) => {
  const past = new Pasts<EnvironmentStatus | undefined>();
  return {
    committed(change: Change) {
      const { storage, type, object, previous } = change;
      const { namespace, name } = object.metadata;
      if (storage === ENVIRONMENTS) {
        const key = keyOf(namespace, name);
        if (past.since(key, 0).length === 0) past.becomes(key, undefined, 0);
        const { status } = object as unknown as StoredEnvironment;
        past.becomes(key, type === 'DELETED' ? undefined : (status ?? {}), facts.kubelets.now);
      }
      if (storage !== TURNS || type !== 'MODIFIED') return;
      const turn = object as unknown as StoredTurn;
      const was = (previous as unknown as StoredTurn | undefined)?.status;
      const { code } = turn.status?.error ?? {};
      if (isTerminal(was?.phase) || (code !== 'EnvironmentFailed' && code !== 'EnvironmentNotReady')) return;
      const session = [...facts.sessions.values()].find(({ metadata }) => metadata.uid === ownerOf(turn));
      const call = facts.callBehind(change);
      // Several turns may end by one decision, one after the other.
      const agoMs = facts.server.clock.now() - Date.parse(turn.status?.finishedAt ?? '') + CLOCK_MS;
      const knewUntil = call ? facts.knewUntil(call, ['environments'], Math.max(0, agoMs)) : Number.POSITIVE_INFINITY;
      const statuses = past.since(keyOf(namespace, session?.spec.environment?.name), knewUntil);
      const passes = (status: EnvironmentStatus) => status.conditions?.some(({ reason }) => PASSING.has(reason));
      const cannotBeBuilt = (status: EnvironmentStatus | undefined) =>
        status?.phase === 'Failed' && (!passes(status) || (status.attempts ?? 0) >= ATTEMPTS);
      const allowed =
        code === 'EnvironmentFailed'
          ? statuses.some(cannotBeBuilt)
          : statuses.length === 0 || statuses.some((status) => status === undefined);
      if (!allowed)
        facts.fail('awaited environment', `turn ${name} ends as ${code}, and its environment may still be built`);
    },
  };
};
