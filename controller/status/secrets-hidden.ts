import { isProblem } from '../settings/effective.ts';
import type { Subject } from '../settings/subject.ts';
import { type ConditionValue, conditionValue } from './conditions.ts';

/**
 * Condition `SecretsHidden`: whether all of the agent's Secrets are long enough to be hidden in outputs, as the
 * session's runner reports; undefined while no runner answers, and where none was ever too short.
 */
export function secretsHidden({ world: { link, session }, settings }: Subject): ConditionValue | undefined {
  if (!link?.bound || isProblem(settings)) return undefined;
  const { env, files } = link.bound.shortSecrets ?? { env: [], files: [] };
  const variables = settings.agent.env.flatMap((entry) =>
    'secret' in entry && env.includes(entry.name) ? [entry.secret] : [],
  );
  const short = [
    ...settings.secrets.filter(({ variable }) => variables.includes(variable)),
    ...settings.secretFiles.filter(({ path }) => files.includes(path)),
  ];
  if (short.length > 0) {
    const keys = [...new Set(short.map(({ name, key }) => `key "${key}" of Secret "${name}"`))];
    const message = `Fewer than 8 characters, so not hidden in outputs and events: ${keys.join(', ')}. Use longer values, or give what is no secret as a plain value.`;
    return conditionValue('False', 'SecretTooShort', message);
  }
  const was = session.status?.conditions?.some(({ type }) => type === 'SecretsHidden');
  return was ? conditionValue('True', 'SecretsHidden') : undefined;
}
