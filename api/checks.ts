/** Checks before an object is created, beyond its schema. */
import { isNotFound } from '../core/kube/errors.ts';
import { sessionRefusal, turnRefusal } from '../core/resources/allowed.ts';
import { type StoredSession, sessionclasses, sessions } from '../core/resources/kinds.ts';
import { jsonBytes, MAX_INPUT_BYTES } from '../core/resources/limits.ts';
import type { Refusal } from '../core/resources/refusal.ts';
import type { SessionSpec } from '../core/resources/session.ts';
import type { SessionClassSpec } from '../core/resources/sessionclass.ts';
import type { TurnSpec } from '../core/resources/turn.ts';
import { checkDepth } from './json.ts';
import { Problem } from './problems.ts';
import type { Services } from './route.ts';

export function checkInput(input: unknown): void {
  checkDepth(input, 'spec.input');
  const bytes = jsonBytes(input);
  if (bytes <= MAX_INPUT_BYTES) return;
  const message = `has ${bytes} bytes as JSON; at most ${MAX_INPUT_BYTES} are allowed. Put large data where the agent can fetch it`;
  throw new Problem('InputTooLarge', `spec.input ${message}.`, { fields: [{ field: 'spec.input', message }] });
}

/** Refuses a missing class, and settings that the class does not allow the session. */
export async function checkClass(
  { api }: Services,
  spec: Pick<SessionSpec, 'class'> & Partial<Omit<SessionSpec, 'input'>>,
): Promise<void> {
  refuse(sessionRefusal(spec, await readClass(api, spec.class)), spec.class);
}

/** Refuses settings that the class of the session does not allow its turns. A class that is missing refuses none. */
export async function checkTurn(
  { api }: Services,
  spec: Pick<TurnSpec, 'timeout'>,
  { spec: { class: className } }: StoredSession,
): Promise<void> {
  if (spec.timeout === undefined) return;
  try {
    const { spec: allowed } = await api.get(sessionclasses, { name: className });
    refuse(turnRefusal(spec, allowed), className);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

const CODES = { NotAllowed: 'NotAllowed', InvalidSpec: 'Invalid' } as const;

function refuse(refused: Refusal | undefined, className: string): void {
  if (!refused) return;
  const { reason, field, message } = refused;
  throw new Problem(CODES[reason], `${field}: ${message} (class "${className}").`, { fields: [{ field, message }] });
}

async function readClass(api: Services['api'], name: string): Promise<SessionClassSpec> {
  try {
    return (await api.get(sessionclasses, { name })).spec;
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const message = `there is no SessionClass "${name}"; kubectl get sessionclasses lists them`;
    throw new Problem('ClassNotFound', `spec.class: ${message}`, { fields: [{ field: 'spec.class', message }] });
  }
}

/** Returns the session if it can take another turn. Rejects with a Problem or an ApiError. */
export async function sessionForTurn({ api }: Services, namespace: string, name: string): Promise<StoredSession> {
  const session = await api.get(sessions, { namespace, name });
  if (session.metadata.deletionTimestamp) {
    throw new Problem('SessionTerminating', `Session "${name}" is being deleted. Create another session.`);
  }
  if (session.spec.turns === 'One') {
    const text = `Session "${name}" has turns: One. Create another session for another turn.`;
    throw new Problem('SessionTakesOneTurn', text);
  }
  return session;
}
