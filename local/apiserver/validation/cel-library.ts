import { isIP } from 'node:net';
import { Environment } from '@marcbachmann/cel-js';
import { parseQuantity } from './quantity.ts';

class Quantity {
  readonly value: number;
  constructor(text: string) {
    const value = parseQuantity(text);
    if (value === undefined) throw new Error(`quantity: unable to parse ${JSON.stringify(text)}`);
    this.value = value;
  }
}

const compiled = new Map<string, RegExp>();

function regexp(pattern: string, flags = 'u'): RegExp {
  const key = `${flags}/${pattern}`;
  let result = compiled.get(key);
  if (!result) {
    result = new RegExp(pattern, flags);
    compiled.set(key, result);
  }
  return result;
}

type Ordered = number | bigint | string;

function sorted(list: Ordered[]): boolean {
  return list.every((item, i) => i === 0 || (list[i - 1] as Ordered) <= item);
}

const extreme = (list: Ordered[], better: (a: Ordered, b: Ordered) => boolean) =>
  list.reduce((a, b) => (better(a, b) ? b : a));

const absoluteUrl = (text: string) => URL.canParse(text) || text.startsWith('/');

/** CEL with Kubernetes' additional functions, as far as rules of custom resources use them. */
export function kubernetesCel(): Environment {
  return new Environment({ enableOptionalTypes: true, homogeneousAggregateLiterals: false })
    .registerType('Quantity', Quantity)
    .registerFunction('quantity(string): Quantity', (text: string) => new Quantity(text))
    .registerFunction('isQuantity(string): bool', (text: string) => parseQuantity(text) !== undefined)
    .registerFunction('Quantity.isLessThan(Quantity): bool', (a: Quantity, b: Quantity) => a.value < b.value)
    .registerFunction('Quantity.isGreaterThan(Quantity): bool', (a: Quantity, b: Quantity) => a.value > b.value)
    .registerFunction('Quantity.compareTo(Quantity): int', (a: Quantity, b: Quantity) =>
      BigInt(Math.sign(a.value - b.value)),
    )
    .registerFunction('isURL(string): bool', absoluteUrl)
    .registerFunction('isIP(string): bool', (text: string) => isIP(text) !== 0)
    .registerFunction(
      'string.find(string): string',
      (text: string, pattern: string) => regexp(pattern).exec(text)?.[0] ?? '',
    )
    .registerFunction('string.findAll(string): list<string>', (text: string, pattern: string) =>
      [...text.matchAll(regexp(pattern, 'gu'))].map(([match]) => match),
    )
    .registerFunction('string.replace(string, string): string', (text: string, from: string, to: string) =>
      text.replaceAll(from, () => to),
    )
    .registerFunction('string.charAt(int): string', (text: string, index: bigint) => [...text][Number(index)] ?? '')
    .registerFunction('list.isSorted(): bool', sorted)
    .registerFunction('list.sum(): dyn', (list: (number | bigint)[]) =>
      list.reduce((a, b) => (typeof a === 'bigint' && typeof b === 'bigint' ? a + b : Number(a) + Number(b)), 0n),
    )
    .registerFunction('list.min(): dyn', (list: Ordered[]) => extreme(list, (a, b) => b < a))
    .registerFunction('list.max(): dyn', (list: Ordered[]) => extreme(list, (a, b) => b > a));
}
