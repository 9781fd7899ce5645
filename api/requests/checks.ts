/** Checks before an object is created, beyond its schema. */
import { isNotFound } from '../../core/kube/errors.ts';
import { sessionRefusal, turnRefusal } from '../../core/resources/allowed.ts';
import { type StoredSession, sessionclasses } from '../../core/resources/kinds.ts';
import { jsonBytes, MAX_INPUT_BYTES } from '../../core/resources/limits.ts';
import { mergedAgent } from '../../core/resources/merged-agent.ts';
import { isNoInput, neededInput } from '../../core/resources/needed-input.ts';
import { missingProgram } from '../../core/resources/program.ts';
import type { Refusal } from '../../core/resources/refusal.ts';
import type { SessionSpec } from '../../core/resources/session.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { TurnSpec } from '../../core/resources/turn.ts';
import { Problem } from '../problems/problems.ts';
import type { Services } from '../route.ts';
import { checkDepth } from './json.ts';

export function checkInput(input: unknown): void {
  checkDepth(input, 'spec.input');
  const bytes = jsonBytes(input);
  if (bytes <= MAX_INPUT_BYTES) return;
  const message = `has ${bytes} bytes as JSON; at most ${MAX_INPUT_BYTES} are allowed. Put large data where the agent can fetch it`;
  throw new Problem('InputTooLarge', `spec.input ${message}.`, { fields: [{ field: 'spec.input', message }] });
}

/**
 * Refuses a missing class, settings that the class does not allow the session, and a session without a program. Resolves
 * to the class.
 */
export async function checkClass(
  { api }: Services,
  spec: Pick<SessionSpec, 'class'> & Partial<Omit<SessionSpec, 'input'>>,
): Promise<SessionClassSpec> {
  const allowed = await findClass(api, spec.class);
  if (!allowed) {
    const message = `there is no SessionClass "${spec.class}"; kubectl get sessionclasses lists them`;
    throw new Problem('ClassNotFound', `spec.class: ${message}`, { fields: [{ field: 'spec.class', message }] });
  }
  refuse(sessionRefusal(spec, allowed) ?? programRefusal(spec, allowed), spec.class);
  return allowed;
}

function programRefusal({ agent = {}, build }: Partial<SessionSpec>, allowed: SessionClassSpec): Refusal | undefined {
  // A session that builds an environment runs the builder, and without a runner the image has a program.
  if (build || allowed.runner === 'None') return undefined;
  const message = missingProgram(mergedAgent(agent, allowed.agent ?? {}));
  return message === undefined ? undefined : { reason: 'InvalidSpec', field: 'spec.agent.command', message };
}

/**
 * Refuses a turn that the class of its session does not allow, or without the input that the session's agent needs. The
 * controller judges a turn whose class is missing.
 */
export async function checkTurn(
  { api }: Pick<Services, 'api'>,
  spec: Pick<TurnSpec, 'timeout' | 'input'>,
  { spec: session }: Pick<StoredSession, 'spec'>,
): Promise<void> {
  if (spec.timeout === undefined && !isNoInput(spec.input)) return;
  const allowed = await findClass(api, session.class);
  if (!allowed) return;
  refuse(turnRefusal(spec, allowed), session.class);
  checkInputGiven(spec.input, session, allowed);
}

/** Refuses a missing input where the session's agent needs one. */
export function checkInputGiven(input: unknown, { agent = {} }: Pick<SessionSpec, 'agent'>, allowed: SessionClassSpec) {
  const needed = isNoInput(input) ? neededInput(mergedAgent(agent, allowed.agent ?? {})) : undefined;
  if (needed === undefined) return;
  const message = `there is none, and ${needed}`;
  throw new Problem('InputMissing', `spec.input: ${message}.`, { fields: [{ field: 'spec.input', message }] });
}

const CODES = { NotAllowed: 'NotAllowed', InvalidSpec: 'Invalid' } as const;

function refuse(refused: Refusal | undefined, className: string): void {
  if (!refused) return;
  const { reason, field, message } = refused;
  throw new Problem(CODES[reason], `${field}: ${message} (class "${className}").`, { fields: [{ field, message }] });
}

async function findClass(api: Services['api'], name: string): Promise<SessionClassSpec | undefined> {
  try {
    return (await api.get(sessionclasses, { name })).spec;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Refuses another turn for a session that takes none. */
export function checkTakesTurns({ metadata: { name, deletionTimestamp }, spec }: StoredSession): void {
  if (deletionTimestamp) {
    throw new Problem('SessionTerminating', `Session "${name}" is being deleted. Create another session.`);
  }
  if (spec.turns === 'One') {
    const text = `Session "${name}" has turns: One. Create another session for another turn.`;
    throw new Problem('SessionTakesOneTurn', text);
  }
}
