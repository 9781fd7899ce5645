import { StartError } from '../errors.ts';

/** What Node's `spawn` threw or told, as the error that every StartProcess rejects with. */
export function spawnFailure(error: unknown): StartError {
  const { code, message } = error as { code?: string; message?: string };
  return new StartError('exec', code ?? message ?? 'unknown');
}
