/** Calls `fn` once when the signal aborts, at once if it already has. The returned function removes the listener. */
export function onAbort(signal: AbortSignal, fn: () => void): () => void {
  if (signal.aborted) {
    fn();
    return () => {};
  }
  signal.addEventListener('abort', fn, { once: true });
  return () => signal.removeEventListener('abort', fn);
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => onAbort(signal, resolve));
}

/** Settles as the promise does, or rejects with the signal's reason when it aborts first. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const remove = onAbort(signal, () => reject(signal.reason));
    promise.then(resolve, reject).finally(remove);
  });
}

/** The signals that each signal of `anySignal` follows. */
const followed = new WeakMap<AbortSignal, readonly AbortSignal[]>();

/**
 * Returns a signal that aborts with the first of the signals. It keeps them in memory as long as it is there itself: a
 * signal of `AbortSignal.any` alone never aborts where the one that aborted is collected before anybody looks
 * (nodejs/node#65995, Node 24.16 and later).
 */
export function anySignal(...signals: readonly AbortSignal[]): AbortSignal {
  const signal = AbortSignal.any([...signals]);
  followed.set(signal, signals);
  return signal;
}
