import { InvalidArgumentError } from 'commander';
import type { StoredSession, StoredTurn } from '../../core/resources/kinds.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { name } from '../input/flags.ts';
import { hanging } from '../print/printable.ts';
import { whyWaiting } from './waiting.ts';

/** What `berth wait` waits for. */

const CONDITIONS = { ready: 'Ready', suspended: 'Suspended', finished: 'Finished' } as const;
export type SessionTarget = keyof typeof CONDITIONS;
export type WaitTarget = { session: SessionTarget } | { turn: string };

/** Progress of an object towards the target; `never`: no event can bring it there any more. */
export type Progress = { is: 'met' } | { is: 'never' | 'waits'; why: string };

/** Parses the value of `--for`. */
export function waitTarget(text: string): WaitTarget {
  if (Object.hasOwn(CONDITIONS, text)) return { session: text as SessionTarget };
  const [, turn] = /^turn=(.*)$/s.exec(text) ?? [];
  if (turn === undefined) {
    throw new InvalidArgumentError('it must be ready, suspended, finished or turn=NAME.');
  }
  return { turn: name(turn) };
}

/**
 * Returns how far the session is. `undefined`: it was deleted. `allowed`: its class, if it is known. `cliName`: the name of
 * the program, for commands in the text.
 */
export function sessionProgress(
  session: Pick<StoredSession, 'metadata' | 'spec' | 'status'> | undefined,
  target: SessionTarget,
  allowed: SessionClassSpec | undefined,
  cliName: string,
): Progress {
  if (!session) return { is: 'never', why: 'it was deleted' };
  const { spec, status = {}, metadata } = session;
  const of = (type: string) => status.conditions?.find((condition) => condition.type === type);
  if (of(CONDITIONS[target])?.status === 'True' && !metadata.deletionTimestamp) return { is: 'met' };
  if (metadata.deletionTimestamp) return { is: 'never', why: 'it is being deleted' };
  if (status.phase === 'Finished' && target !== 'finished') {
    const { reason, message } = of('Finished') ?? { reason: 'Finished', message: 'it takes no turn any more' };
    return { is: 'never', why: `it is finished: ${reason}: ${message}` };
  }
  switch (target) {
    case 'ready':
      return { is: 'waits', why: whyWaiting(session, cliName) };
    case 'suspended':
      return { is: 'waits', why: whyNotSuspended(session, cliName) };
    case 'finished':
      if (spec.turns === 'Many' && allowed && !hasLifetime(spec, allowed)) {
        const why = `it takes turns without end: neither it nor its class has timeouts.lifetime; to wait for one of its turns: --for=turn=NAME`;
        return { is: 'never', why };
      }
      return { is: 'waits', why: status.phase === undefined ? whyWaiting(session, cliName) : `it is ${status.phase}` };
  }
}

/** Returns how far the turn is: only one that has succeeded is there. */
export function turnProgress(turn: Pick<StoredTurn, 'metadata' | 'status'> | undefined): Progress {
  if (!turn) return { is: 'never', why: 'it was deleted before it ended' };
  const { phase, error, conditions } = turn.status ?? {};
  if (phase === 'Succeeded') return { is: 'met' };
  if (isTerminal(phase)) {
    return { is: 'never', why: `it ended ${phase}${error ? `: ${error.code}: ${hanging(error.message)}` : ''}` };
  }
  if (phase === undefined) return { is: 'waits', why: 'no controller has seen it yet' };
  const waits = phase === 'Queued' && conditions?.find(({ type }) => type === 'Finished');
  return { is: 'waits', why: waits ? `it is ${phase}: ${waits.reason}: ${waits.message}` : `it is ${phase}` };
}

const hasLifetime = ({ timeouts }: StoredSession['spec'], { timeouts: byDefault, maxTimeouts }: SessionClassSpec) =>
  (timeouts?.lifetime ?? byDefault?.lifetime ?? maxTimeouts?.lifetime) !== undefined;

function whyNotSuspended(
  { metadata, spec, status = {} }: Pick<StoredSession, 'metadata' | 'spec' | 'status'>,
  cliName: string,
): string {
  const { currentTurn, phase, conditions, suspendHandled } = status;
  const suspended = conditions?.find(({ type }) => type === 'Suspended');
  if (phase === 'Suspending' && suspended) return `${suspended.reason}: ${suspended.message}`;
  const stored = conditions?.find(({ type }) => type === 'StatePersisted');
  if (stored?.reason === 'StateNotStored' || stored?.reason === 'StateTooLarge') {
    return `${stored.reason}: ${stored.message}`;
  }
  if (currentTurn) return `turn ${currentTurn} of the session is running`;
  const isAsked = spec.suspend || (spec.suspendRequest !== undefined && suspendHandled?.id !== spec.suspendRequest);
  const hint = isAsked ? '' : `; to suspend it: ${cliName} suspend ${metadata.name}`;
  return `it is ${phase ?? 'not seen by a controller yet'}${hint}`;
}
