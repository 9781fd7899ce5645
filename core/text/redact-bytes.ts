import { isUtf8 } from 'node:buffer';
import type { Rules } from './hidden.ts';
import { Redactor } from './redact.ts';

/** Characters that are searched between two looks at other work. */
const PIECE_CHARS = 256 * 1024;

const ofBytes = new WeakMap<Rules, Rules>();

/** Rules for a text that has one character for each byte. */
function rulesForBytes(rules: Rules): Rules {
  let found = ofBytes.get(rules);
  if (!found) {
    const inBytes = (text: string) => Buffer.from(text).toString('latin1');
    const texts = rules.texts.map(inBytes).sort((a, b) => b.length - a.length);
    found = { ...rules, texts, wrapped: rules.wrapped.map(inBytes) };
    ofBytes.set(rules, found);
  }
  return found;
}

/**
 * Redacts the content of a file, as text where it is UTF-8, otherwise byte by byte. Returns the same bytes where nothing is
 * hidden. `onHidden` is called for each `[REDACTED]`.
 */
export async function redactBytes(content: Buffer, rules: Rules, onHidden: () => void = () => {}): Promise<Buffer> {
  if (rules.texts.length + rules.patterns.length === 0 && !rules.heuristics) return content;
  const encoding = isUtf8(content) ? 'utf8' : 'latin1';
  const text = content.toString(encoding);
  let hidden = 0;
  const redactor = new Redactor(encoding === 'utf8' ? rules : rulesForBytes(rules), () => {
    hidden += 1;
    onHidden();
  });
  let redacted = '';
  for (let at = 0; at < text.length; at += PIECE_CHARS) {
    redacted += redactor.push(text.slice(at, at + PIECE_CHARS));
    if (at + PIECE_CHARS < text.length) await new Promise(setImmediate);
  }
  redacted += redactor.end();
  return hidden === 0 ? content : Buffer.from(redacted, encoding);
}
