/** Calls `fn` once when the signal aborts, at once if it already has. The returned function removes the listener. */
export function onAbort(signal: AbortSignal | undefined, fn: () => void): () => void {
  if (signal?.aborted) fn();
  else signal?.addEventListener('abort', fn, { once: true });
  return () => signal?.removeEventListener('abort', fn);
}

/** Settles as the promise does, or rejects with the signal's reason when it aborts first. */
export function unlessAborted<T>(promise: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal.reason));
    promise.then(
      (value) => {
        forget();
        resolve(value);
      },
      (error) => {
        forget();
        reject(error);
      },
    );
  });
}
