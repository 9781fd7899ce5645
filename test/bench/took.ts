/** Samples that are not counted: the first of a program are slower. */
const FIRST = 3;

/** Milliseconds that `work` takes. */
export async function took(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** Series of two works that alternate, so that other load of the machine weighs equally on both. */
export async function alternating(samples: number, own: () => Promise<unknown>, other: () => Promise<unknown>) {
  const values: number[] = [];
  const beside: number[] = [];
  for (let i = -FIRST; i < samples; i++) {
    const [otherMs, ownMs] = [await took(other), await took(own)];
    if (i < 0) continue;
    beside.push(otherMs);
    values.push(ownMs);
  }
  return { values, beside };
}
