import { ConfigError } from './config.ts';
import { KubeConfigError } from './kube/connection.ts';
import { UnsupportedVersionError } from './kube/version.ts';

/** What a program that cannot start says on stderr: where an error comes from only if nobody foresaw it. */
export function startFailure(program: string, error: unknown): string {
  // It names every problem, a line each.
  if (error instanceof ConfigError) return error.message;
  const listening = (error as NodeJS.ErrnoException | undefined)?.syscall === 'listen';
  const foreseen = listening || error instanceof KubeConfigError || error instanceof UnsupportedVersionError;
  if (foreseen || !(error instanceof Error)) return `${program}: ${error instanceof Error ? error.message : error}`;
  return `${program}: ${error.stack ?? error.message}`;
}
