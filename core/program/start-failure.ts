import { KubeConfigError } from '../kube/connection.ts';
import { UnsupportedVersionError } from '../kube/server-version.ts';
import { ConfigError } from './config.ts';

/** Message of a program that cannot start, for stderr. Only an unexpected error includes its stack. */
export function startFailure(program: string, error: unknown): string {
  // A ConfigError names every problem, one per line.
  if (error instanceof ConfigError) return error.message;
  const listening = (error as NodeJS.ErrnoException | undefined)?.syscall === 'listen';
  const foreseen = listening || error instanceof KubeConfigError || error instanceof UnsupportedVersionError;
  if (foreseen || !(error instanceof Error)) return `${program}: ${error instanceof Error ? error.message : error}`;
  return `${program}: ${error.stack ?? error.message}`;
}
