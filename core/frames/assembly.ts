/**
 * Joins the parts of one message, in any order, repeated or not. A part with another id discards the earlier parts. A
 * sender writes the parts of a message one after the other, so the missing ones of the earlier message will not come.
 */
export class Assembly {
  readonly #maxBytes: number;
  #id = '';
  #parts: (Buffer | undefined)[] = [];
  #missing = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Reports whether parts of this message are gathered. */
  gathers(id: string): boolean {
    return this.#missing > 0 && id === this.#id;
  }

  /** Returns the whole message once its last part has arrived; until then the outcome of this part. */
  add(id: string, part: number, parts: number, piece: Buffer): Buffer | 'Incomplete' | 'Repeated' | 'TooLarge' {
    if (parts === 1) {
      this.clear();
      return piece;
    }
    if (id !== this.#id) {
      this.clear();
      this.#id = id;
      this.#missing = parts;
    }
    if (this.#parts[part]) return 'Repeated';
    if (this.#bytes + piece.length > this.#maxBytes) {
      this.clear();
      return 'TooLarge';
    }
    this.#parts[part] = piece;
    this.#bytes += piece.length;
    this.#missing -= 1;
    if (this.#missing > 0) return 'Incomplete';
    const whole = Buffer.concat(this.#parts.slice(1) as Buffer[], this.#bytes);
    this.clear();
    return whole;
  }

  clear(): void {
    this.#id = '';
    this.#parts = [];
    this.#missing = 0;
    this.#bytes = 0;
  }
}
