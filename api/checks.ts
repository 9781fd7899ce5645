/** Checks before an object is created, beyond its schema. */
import { isNotFound } from '../core/kube/errors.ts';
import { notAllowed } from '../core/resources/allowed.ts';
import { type StoredSession, sessionclasses, sessions } from '../core/resources/kinds.ts';
import { jsonBytes, MAX_INPUT_BYTES } from '../core/resources/limits.ts';
import { mergedAgent } from '../core/resources/merged-agent.ts';
import { isNoInput, neededInput } from '../core/resources/needed-input.ts';
import type { SessionSpec } from '../core/resources/session.ts';
import type { SessionClassSpec } from '../core/resources/sessionclass.ts';
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

/** Refuses a turn without an input where the session's agent needs one. The controller judges a class that is missing. */
export async function checkInputGiven(
  { api }: Pick<Services, 'api'>,
  input: unknown,
  { class: name, agent = {} }: Pick<SessionSpec, 'class' | 'agent'>,
): Promise<void> {
  if (!isNoInput(input)) return;
  const found = await api.get(sessionclasses, { name }).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  const needed = found && neededInput(mergedAgent(agent, found.spec.agent ?? {}));
  if (needed === undefined) return;
  const message = `there is none, and ${needed}`;
  throw new Problem('InputMissing', `spec.input: ${message}.`, { fields: [{ field: 'spec.input', message }] });
}

/** Refuses a missing class, and settings that the class does not allow the session. */
export async function checkClass(
  { api }: Services,
  spec: Pick<SessionSpec, 'class'> & Partial<Omit<SessionSpec, 'input'>>,
): Promise<void> {
  const refused = notAllowed(spec, await readClass(api, spec.class));
  if (!refused) return;
  throw new Problem('NotAllowed', `${refused.field}: ${refused.message} (class "${spec.class}").`, {
    fields: [refused],
  });
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
