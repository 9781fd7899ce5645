import type * as z from 'zod';

/** The environment does not fit a program's configuration. The text lists every variable that is wrong. */
export class ConfigError extends Error {
  readonly code = 'ConfigInvalid';
}

/** Parses a program's configuration from environment variables; an empty variable counts as not set. */
export function parseConfig<T extends z.ZodType>(schema: T, env: Record<string, string | undefined>): z.output<T> {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const parsed = schema.safeParse(set);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => {
    const name = issue.path.join('.');
    return `  ${name}: ${set[name] === undefined ? 'is not set' : `"${set[name]}": ${issue.message}`}`;
  });
  throw new ConfigError(`the configuration cannot be used:\n${problems.join('\n')}`);
}
