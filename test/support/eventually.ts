import { countWait } from '../times/clock.ts';

/**
 * Waits until `check` returns a value other than undefined, null or false, with a try every `everyMs` (default 20). Throws after
 * `timeoutMs` (default 60 s, enough for a busy machine) with `what`, and with the last error that `check` threw.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  options: { timeoutMs?: number; everyMs?: number; what?: string } = {},
): Promise<NonNullable<T>> {
  const startedAt = performance.now();
  const deadline = startedAt + (options.timeoutMs ?? 60_000);
  let last: unknown;
  for (;;) {
    try {
      const value = await check();
      if (value !== undefined && value !== null && value !== false) {
        countWait(options.what ?? 'condition', performance.now() - startedAt);
        return value as NonNullable<T>;
      }
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) {
      throw new Error(`not within ${options.timeoutMs ?? 60_000} ms: ${options.what ?? 'condition'}`, { cause: last });
    }
    await new Promise((resolve) => setTimeout(resolve, options.everyMs ?? 20));
  }
}
