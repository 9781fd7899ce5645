import type { Limits } from '../../core/frames/messages.ts';

/**
 * RLIMIT_NPROC counts the threads of a uid, and all pods of a node have the same uid: room for theirs. It only slows down a
 * fork bomb until the keeper's next look; the exact number is what the keeper counts.
 */
const THREADS_BESIDE = 16_384;
/** A process that asks for much more than its whole family may have gets none; one that grows is told why it ends. Node reserves 580 MB. */
const DATA_BESIDE = 2 ** 30;

/** The keeper's first argument. `contained`: nobody is in its PID namespace but the runner, as PID 1, and what it started. */
export function keeperLimits(limits: Limits, contained: boolean): string {
  const { memoryBytes, cpuSeconds, fileSizeBytes, processes, openFiles, coreBytes } = limits;
  const numbers = {
    memory: memoryBytes,
    // Not RLIMIT_AS, which breaks WebAssembly, Go and Java: it counts addresses that are only reserved. This counts what can be written.
    data: memoryBytes === undefined ? undefined : memoryBytes + DATA_BESIDE,
    cpu: cpuSeconds,
    fsize: fileSizeBytes,
    processes,
    nproc: processes === undefined ? undefined : processes + THREADS_BESIDE,
    nofile: openFiles,
    core: coreBytes,
    contained: contained ? 1 : undefined,
  };
  const text = Object.entries(numbers).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]));
  return text.join(',') || '-';
}
