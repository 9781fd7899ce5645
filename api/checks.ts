/** What can be refused before an object is created, beyond its schema. */
import { isNotFound } from '../core/kube/errors.ts';
import { type StoredSession, sessionclasses, sessions } from '../core/resources/kinds.ts';
import { jsonBytes, MAX_INPUT_BYTES } from '../core/resources/limits.ts';
import { Problem } from './problems.ts';
import type { Services } from './route.ts';

export function checkInput(input: unknown): void {
  const bytes = jsonBytes(input);
  if (bytes <= MAX_INPUT_BYTES) return;
  const message = `has ${bytes} bytes as JSON; at most ${MAX_INPUT_BYTES} are allowed. Put large data where the agent can fetch it`;
  throw new Problem('InputTooLarge', `spec.input ${message}.`, { fields: [{ field: 'spec.input', message }] });
}

export async function checkClass({ api }: Services, name: string): Promise<void> {
  try {
    await api.get(sessionclasses, { name });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const message = `there is no SessionClass "${name}"; kubectl get sessionclasses lists them`;
    throw new Problem('ClassNotFound', `spec.class: ${message}`, { fields: [{ field: 'spec.class', message }] });
  }
}

/** The session, where it can take another turn. Rejects with a Problem or an ApiError. */
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
