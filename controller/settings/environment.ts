import type { StoredEnvironment } from '../../core/resources/kinds.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { CachedSession, Problem, World } from '../observed/world.ts';

/** Environment that the session's next incarnation gets, as its status records it. */
export type TakenEnvironment = NonNullable<SessionStatus['environment']>;

/**
 * Problem that keeps the session from starting with its environment, or the environment that it gets. An environment that the
 * session has had stays its own when the Environment is deleted.
 */
export function environmentOf(
  {
    session: { spec, status },
    environment: found,
    memory,
    now,
  }: Pick<World, 'session' | 'environment' | 'memory' | 'now'>,
  runner: SessionClassSpec['runner'],
): { taken: TakenEnvironment } | { problem: Problem } | undefined {
  const name = spec.environment?.name;
  if (name === undefined) return undefined;
  if (runner === 'None') {
    const message =
      'spec.environment: is set, but with the class’s runner None nobody unpacks it; leave it out, or name a class with a runner';
    return { problem: { reason: 'InvalidSpec', message } };
  }
  if (found === undefined) {
    const message = 'spec.environment: the controller has not read the Environments of the namespace yet';
    return { problem: { reason: 'EnvironmentNotReady', message } };
  }
  if (found === 'Missing') {
    if (status?.environment?.name === name && status.environment.archive.sessionUID !== memory.lostEnvironment)
      return { taken: status.environment };
    const message = `spec.environment: there is no Environment "${name}"; create it`;
    return { problem: { reason: 'EnvironmentNotReady', message } };
  }
  const given = ofEnvironment(spec, found, now);
  if ('problem' in given || given.taken.archive.sessionUID !== memory.lostEnvironment) return given;
  // The Environment's status is about to follow.
  const message = `spec.environment: the archive of Environment "${name}" is gone, and it is built again`;
  return { problem: { reason: 'EnvironmentNotReady', message } };
}

function ofEnvironment(
  spec: CachedSession['spec'],
  { metadata: { name }, spec: wanted, status }: StoredEnvironment,
  now: number,
): { taken: TakenEnvironment } | { problem: Problem } {
  if (wanted.class !== spec.class) {
    const message = `spec.environment: Environment "${name}" is of class "${wanted.class}", the session of "${spec.class}"; create one of the session’s class`;
    return { problem: { reason: 'NotAllowed', message } };
  }
  const { phase, hash, archive, conditions } = status ?? {};
  if (phase === 'Ready' && hash && archive) return { taken: { name, hash, archive } };
  const ready = conditions?.find(({ type }) => type === 'Ready');
  if (phase === 'Failed' && !isDueAgain(status, now)) {
    const why = ready ? `${ready.reason}: ${ready.message}` : 'it has failed';
    return {
      problem: {
        reason: 'EnvironmentFailed',
        message: `spec.environment: Environment "${name}" cannot be built: ${why}`,
      },
    };
  }
  const why = phase === 'Building' ? 'is being built' : 'waits to be built';
  return { problem: { reason: 'EnvironmentNotReady', message: `spec.environment: Environment "${name}" ${why}` } };
}

/** Reports whether the environment exists and may still become ready. */
export function mayBecomeReady({ environment: found, now }: Pick<World, 'environment' | 'now'>): boolean {
  if (found === undefined) return true;
  return found !== 'Missing' && (found.status?.phase !== 'Failed' || isDueAgain(found.status, now));
}

/** Reports whether a failed environment is built again as soon as a session needs it. */
const isDueAgain = (status: StoredEnvironment['status'], now: number) =>
  status?.retryAt !== undefined && Date.parse(status.retryAt) <= now;
