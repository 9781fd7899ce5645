import type { TerminalSize } from '../../core/enter/hello.ts';
import type { Limits } from '../../core/frames/messages.ts';

/**
 * Room for the threads of other pods: RLIMIT_NPROC counts the threads of a uid, and all pods of a node have the same
 * uid. The rlimit only slows down a fork bomb until the keeper's next check, and the keeper counts the exact number.
 */
const THREADS_BESIDE = 16_384;
/**
 * Room above the family's memory limit. A process that requests much more than its whole family may have gets no
 * memory; one that grows learns why it ends. Node reserves 580 MB.
 */
const DATA_BESIDE = 2 ** 30;

/**
 * Returns the keeper's first argument. `contained`: its PID namespace has no processes but the runner, as PID 1, and
 * its descendants. `tty`: size of the program's terminal, if it has one.
 */
export function keeperLimits(limits: Limits, contained: boolean, tty?: TerminalSize): string {
  const { memoryBytes, cpuSeconds, fileSizeBytes, processes, openFiles, coreBytes } = limits;
  const values = {
    memory: memoryBytes,
    // RLIMIT_DATA counts writable memory. RLIMIT_AS would break WebAssembly, Go and Java, because it counts addresses
    // that are only reserved.
    data: memoryBytes === undefined ? undefined : memoryBytes + DATA_BESIDE,
    cpu: cpuSeconds,
    fsize: fileSizeBytes,
    processes,
    nproc: processes === undefined ? undefined : processes + THREADS_BESIDE,
    nofile: openFiles,
    core: coreBytes,
    contained: contained ? 1 : undefined,
    tty: tty && `${tty.rows}x${tty.columns}`,
  };
  const text = Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]));
  return text.join(',') || '-';
}
