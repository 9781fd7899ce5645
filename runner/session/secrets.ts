import type { AgentSpec, Bound } from '../../core/frames/messages.ts';
import { isTooShort } from '../../core/text/hidden.ts';
import { linesOf, secretsIn } from './secret-files.ts';

export interface SessionSecrets {
  /** Values of the Secrets that `agent.env` names, by the name of the runner's variable. */
  secrets: ReadonlyMap<string, string>;
  /** Lines of these values, and the parts of the secret files. */
  parts: readonly string[];
  /** Secrets that are too short to be looked for in outputs. */
  short: Bound['shortSecrets'];
}

/** Reads the secrets that were given to a session. `read` reads a secret file. */
export function secretsOf(
  { env, secretFiles = [] }: AgentSpec,
  environment: Readonly<Record<string, string | undefined>>,
  read: (path: string) => Buffer,
): SessionSecrets {
  const secrets = new Map<string, string>();
  const parts: string[] = [];
  const short = { env: [] as string[], files: [] as string[] };
  for (const entry of env) {
    const value = 'secret' in entry ? environment[entry.secret] : undefined;
    if (!('secret' in entry) || value === undefined) continue;
    secrets.set(entry.secret, value);
    // The value may be printed line by line: indented, with other line ends, or in part.
    parts.push(...linesOf(value));
    if (isTooShort(value)) short.env.push(entry.name);
  }
  for (const { path } of secretFiles) {
    const content = read(path);
    parts.push(...secretsIn(content));
    if (isTooShort(content.toString('utf8'))) short.files.push(path);
  }
  return { secrets, parts, short: short.env.length + short.files.length > 0 ? short : undefined };
}
