const FACTORS: Record<string, number> = {
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** Parses a Kubernetes quantity: `500m` is 0.5, `1Ki` is 1024. The schema has checked its form. */
export function parseQuantity(text: string): number {
  const match = /^([0-9.]+)([A-Za-z]*)$/.exec(text);
  if (!match) throw new RangeError(`"${text}" is not a quantity`);
  return Number(match[1]) * (FACTORS[match[2] as string] ?? 1);
}

/** Reports whether an amount exceeds another; false where either is absent. */
export function isAbove(amount: string | undefined, most: string | undefined): boolean {
  return amount !== undefined && most !== undefined && parseQuantity(amount) > parseQuantity(most);
}
