import type { Command, Word, WordPart } from 'unbash';

/** Builtins of bash 3.2 to 5.3. */
export const BUILTINS: ReadonlySet<string> = new Set(
  `. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable
  eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read
  readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias unset
  wait`.split(/\s+/),
);

/** Returns the text of a word without its quotes; undefined where it depends on anything but the text. */
export function literalOf(word: Word | undefined): string | undefined {
  if (!word) return undefined;
  if (!(word.parts ?? []).every(isLiteral)) return undefined;
  return word.value;
}

function isLiteral(part: WordPart): boolean {
  if (part.type === 'DoubleQuoted') return part.parts.every((inner) => inner.type === 'Literal');
  return part.type === 'Literal' || part.type === 'SingleQuoted' || part.type === 'AnsiCQuoted';
}

/** Returns the arguments that are plain words; undefined in the place of any other. */
export function argumentsOf(command: Command): (string | undefined)[] {
  return command.args.map((argument) => (argument.type === 'Word' ? literalOf(argument) : undefined));
}

/** Reports whether the word as written contains a slash outside of expansions. */
export function hasSlash(word: Word): boolean {
  return (word.parts ?? []).some(partHasSlash);
}

function partHasSlash(part: WordPart): boolean {
  if (part.type === 'DoubleQuoted') return part.parts.some(partHasSlash);
  return (part.type === 'Literal' || part.type === 'SingleQuoted') && part.value.includes('/');
}
