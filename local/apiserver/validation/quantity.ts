const quantity = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E))?$/;

const factors: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** Returns the number of a Kubernetes quantity (`500m`, `1Gi`); undefined for other text. */
export function parseQuantity(text: string): number | undefined {
  const match = quantity.exec(text);
  if (!match) return undefined;
  const [, number, exponent, suffix] = match;
  return Number(`${number}${exponent ?? ''}`) * (suffix ? (factors[suffix] as number) : 1);
}
