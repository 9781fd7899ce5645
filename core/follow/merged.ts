/**
 * Yields what the iterators yield, each in its order. Ends when all have ended, rejects as the first that does. An iterator
 * that is waiting when this ends goes on to wait: a signal has to end it.
 */
export async function* merged<T>(iterators: readonly AsyncIterator<T>[]): AsyncGenerator<T> {
  const ready: { of: AsyncIterator<T>; result: IteratorResult<T> }[] = [];
  let failed: { error: unknown } | undefined;
  let wake = () => {};
  // No race of the promises: each race would leave a reaction at those that wait for long.
  const ask = (of: AsyncIterator<T>) => {
    of.next().then(
      (result) => {
        ready.push({ of, result });
        wake();
      },
      (error: unknown) => {
        failed ??= { error };
        wake();
      },
    );
  };
  try {
    for (const of of iterators) ask(of);
    for (let open = iterators.length; open > 0; ) {
      if (failed) throw failed.error;
      const next = ready.shift();
      if (!next) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      } else if (next.result.done) {
        open -= 1;
      } else {
        yield next.result.value;
        ask(next.of);
      }
    }
  } finally {
    for (const of of iterators) void of.return?.().catch(() => {});
  }
}
