import { StartError } from '../system/errors.ts';

const FILES = 'the pod or its node has as many open files as it may';

/** Resource shortages that make spawn fail, by errno. The program is not their cause. */
export const SHORTAGES: Readonly<Record<string, string>> = {
  EAGAIN:
    'the pod has as many processes and threads as it may (the kubelet’s podPidsLimit), or the node, or its pods’ user on the node (docs/decisions/uid.md)',
  EMFILE: FILES,
  ENFILE: FILES,
  ENOMEM: 'the pod or its node has no memory left',
};

/** Converts an error of Node's `spawn`, thrown or emitted, to the error that every StartProcess rejects with. */
export function spawnFailure(error: unknown): StartError {
  const { code, message } = error as { code?: string; message?: string };
  return new StartError(code && SHORTAGES[code] ? 'spawn' : 'exec', code ?? message ?? 'unknown');
}
