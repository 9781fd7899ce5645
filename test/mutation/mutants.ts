import { stripTypeScriptTypes } from 'node:module';

/** Small edit of a source file: `find` at `offset` becomes `replace`. */
export interface Mutant {
  /** Path from the root of the checkout. */
  file: string;
  offset: number;
  find: string;
  replace: string;
}

/** Edits, as patterns over code without types, comments and strings. Biome's formatting puts spaces around binary operators. */
const EDITS: readonly { pattern: RegExp; replace: (match: string) => string }[] = [
  { pattern: / === /g, replace: () => ' !== ' },
  { pattern: / !== /g, replace: () => ' === ' },
  { pattern: / < /g, replace: () => ' <= ' },
  { pattern: / <= /g, replace: () => ' < ' },
  { pattern: / > /g, replace: () => ' >= ' },
  { pattern: / >= /g, replace: () => ' > ' },
  { pattern: / && /g, replace: () => ' || ' },
  { pattern: / \|\| /g, replace: () => ' && ' },
  { pattern: / \?\? /g, replace: () => ' && ' },
  { pattern: / \+ /g, replace: () => ' - ' },
  { pattern: / - /g, replace: () => ' + ' },
  { pattern: / \* /g, replace: () => ' / ' },
  { pattern: /(?<=[ (])!(?=[\w(])/g, replace: () => '' },
  { pattern: /\btrue\b/g, replace: () => 'false' },
  { pattern: /\bfalse\b/g, replace: () => 'true' },
  { pattern: /(?<![\w.$])\d[\d_]*(?![\w.$])/g, replace: (number) => String(Number(number.replaceAll('_', '')) + 1) },
  { pattern: /\bMath\.min\b/g, replace: () => 'Math.max' },
  { pattern: /\bMath\.max\b/g, replace: () => 'Math.min' },
  { pattern: /\.some\(/g, replace: () => '.every(' },
  { pattern: /\.every\(/g, replace: () => '.some(' },
  { pattern: /\b(continue|return);/g, replace: () => ';' },
  // A call on a line of its own, for its effect.
  { pattern: /(?<=\n +)(await )?(this\.)?[\w#]+(\??\.[\w#]+)*\([^\n;]*\);(?=\n)/g, replace: () => ';' },
];

/** All mutants of one file's text. */
export function mutantsOf(file: string, source: string): Mutant[] {
  const code = codeOnly(stripTypeScriptTypes(source, { mode: 'strip' }));
  const mutants: Mutant[] = [];
  for (const { pattern, replace } of EDITS) {
    for (const { index, 0: text } of code.matchAll(pattern)) {
      // A string inside a statement is blank in `code`; the edit is made in the source.
      const find = source.slice(index, index + text.length);
      mutants.push({ file, offset: index, find, replace: replace(text) });
    }
  }
  return mutants;
}

export function applied(source: string, { offset, find, replace }: Mutant): string {
  if (!source.startsWith(find, offset)) throw new Error(`not at offset ${offset}: ${find}`);
  return source.slice(0, offset) + replace + source.slice(offset + find.length);
}

export function lineOf(source: string, offset: number): number {
  return source.slice(0, offset).split('\n').length;
}

/** Comments, strings, templates and regular expressions, each blanked; everything else at its place. */
function codeOnly(text: string): string {
  const literal =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=[(=,:[!&|?{};\n] *)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\/[a-z]*/g;
  return text.replace(literal, (match) => match.replace(/[^\n]/g, ' '));
}
