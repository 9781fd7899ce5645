/**
 * Checks the syntax of one JSON object byte by byte, so that text that only begins like an object is recognized at
 * once.
 */

/** Limit of the depth, higher than that of any accepted result. */
const MAX_DEPTH = 1000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const LITERALS: Record<number, string> = { 116: 'rue', 102: 'alse', 110: 'ull' };

type Expects = 'Value' | 'ValueOrEnd' | 'Key' | 'KeyOrEnd' | 'Colon' | 'CommaOrEnd';
type Within = 'Nothing' | 'Key' | 'Text' | 'Number' | 'Literal';

/** `More`: the beginning of an object; `Done`: a whole object; `Broken`: not the beginning of any object. */
export type Verdict = 'More' | 'Done' | 'Broken';

export class ObjectSyntax {
  /** The open brackets, outermost first. */
  readonly #open: number[] = [];
  #expects: Expects = 'Value';
  #within: Within = 'Nothing';
  /** Remaining characters of true, false or null. */
  #literal = '';
  #escape: 'None' | 'Begun' | 1 | 2 | 3 | 4 = 'None';

  /** The first byte must be the opening brace. */
  push(byte: number): Verdict {
    if (this.#within === 'Key' || this.#within === 'Text') return this.#text(byte);
    if (this.#within === 'Literal') {
      if (byte !== this.#literal.charCodeAt(0)) return 'Broken';
      this.#literal = this.#literal.slice(1);
      if (!this.#literal) this.#within = 'Nothing';
      return 'More';
    }
    if (this.#within === 'Number') {
      if (isNumberByte(byte)) return 'More';
      this.#within = 'Nothing';
    }
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) return 'More';
    return this.#structure(byte);
  }

  #structure(byte: number): Verdict {
    switch (this.#expects) {
      case 'Colon':
        this.#expects = 'Value';
        return byte === COLON ? 'More' : 'Broken';
      case 'Key':
      case 'KeyOrEnd':
        if (byte === CLOSE_OBJECT && this.#expects === 'KeyOrEnd') return this.#close(OPEN_OBJECT);
        this.#within = 'Key';
        return byte === QUOTE ? 'More' : 'Broken';
      case 'CommaOrEnd':
        if (byte === CLOSE_OBJECT) return this.#close(OPEN_OBJECT);
        if (byte === CLOSE_LIST) return this.#close(OPEN_LIST);
        this.#expects = this.#open.at(-1) === OPEN_OBJECT ? 'Key' : 'Value';
        return byte === COMMA ? 'More' : 'Broken';
      case 'ValueOrEnd':
        if (byte === CLOSE_LIST) return this.#close(OPEN_LIST);
        return this.#value(byte);
      case 'Value':
        return this.#value(byte);
    }
  }

  #value(byte: number): Verdict {
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      this.#open.push(byte);
      this.#expects = byte === OPEN_OBJECT ? 'KeyOrEnd' : 'ValueOrEnd';
      return this.#open.length > MAX_DEPTH ? 'Broken' : 'More';
    }
    this.#expects = 'CommaOrEnd';
    if (byte === QUOTE) this.#within = 'Text';
    else if (isNumberByte(byte)) this.#within = 'Number';
    else {
      const literal = LITERALS[byte];
      if (!literal) return 'Broken';
      this.#literal = literal;
      this.#within = 'Literal';
    }
    return 'More';
  }

  #close(bracket: number): Verdict {
    if (this.#open.pop() !== bracket) return 'Broken';
    this.#expects = 'CommaOrEnd';
    return this.#open.length ? 'More' : 'Done';
  }

  #text(byte: number): Verdict {
    if (this.#escape === 'Begun') {
      if (byte === 0x75) this.#escape = 4;
      else if ('"\\/bfnrt'.includes(String.fromCharCode(byte))) this.#escape = 'None';
      else return 'Broken';
    } else if (this.#escape !== 'None') {
      if (!/^[0-9a-fA-F]$/.test(String.fromCharCode(byte))) return 'Broken';
      this.#escape = this.#escape === 1 ? 'None' : ((this.#escape - 1) as 1 | 2 | 3);
    } else if (byte === BACKSLASH) this.#escape = 'Begun';
    else if (byte === QUOTE) {
      this.#expects = this.#within === 'Key' ? 'Colon' : 'CommaOrEnd';
      this.#within = 'Nothing';
    } else if (byte < 0x20) return 'Broken';
    return 'More';
  }
}

/** Tests for a byte of a number. Only the parser distinguishes real numbers from text with the same characters. */
function isNumberByte(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x2b || byte === 0x2e || (byte | 0x20) === 0x65;
}
