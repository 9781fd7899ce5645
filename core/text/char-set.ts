/** Set of characters of one UTF-16 unit, never a line feed. */
export class CharSet {
  readonly #kind: RegExp;

  constructor(kind: RegExp) {
    this.#kind = kind;
  }

  has(char: number): boolean {
    return char !== 10 && this.#kind.test(String.fromCharCode(char));
  }
}
