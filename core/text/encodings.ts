/** Encodings in which an agent may write a text or bytes. */

/** Shorter encodings also stand in ordinary text: the middle of a short secret in base64 is four letters. */
const MIN_ENCODED = 8;

/**
 * Returns the text as JavaScript, Python, Go and PHP write it in JSON. A number is added in the form in which it is
 * written again after it was read.
 */
export function jsonForms(text: string): string[] {
  const plain = JSON.stringify(text).slice(1, -1);
  const ascii = escapedIn(plain, /[^\0-\x7f]/g);
  const forms = [plain, ascii, escapedIn(plain, /[<>&\u2028\u2029]/g)];
  forms.push(plain.replaceAll('/', '\\/'), ascii.replaceAll('/', '\\/'));
  const number = Number(text);
  if (Number.isFinite(number) && String(number).length >= MIN_ENCODED) forms.push(String(number));
  return forms;
}

function escapedIn(text: string, kind: RegExp): string {
  return text.replace(kind, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * Returns the text as encodeURIComponent, forms and strict encoders write it, with hexadecimal digits in either case.
 */
export function urlForms(text: string): string[] {
  if (!text.isWellFormed()) return [];
  const plain = encodeURIComponent(text);
  const strict = plain.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  const form = strict.replaceAll('%2A', '*').replaceAll('~', '%7E');
  const paths = [plain, strict, form].flatMap((style) => [style, style.replaceAll('%2F', '/')]);
  const all = paths.flatMap((style) => [style, style.replaceAll('%20', '+')]);
  return [...all, ...all.map((style) => style.replace(/%../g, (code) => code.toLowerCase()))];
}

/**
 * Returns the visible part of the bytes in base64, for each of the three offsets among other bytes, in both alphabets.
 */
export function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const all = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    // A character of base64 is six bits: the first and the last may also hold bits of the neighbours.
    const middle = all.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
    return middle.length < MIN_ENCODED ? [] : [middle, middle.replaceAll('+', '-').replaceAll('/', '_')];
  });
}
