import { rewriteForBash } from '../../../runner/shell/rewrite.ts';
import { corpus } from './corpus.ts';
import { generated } from './generator.ts';
import { type Pair, parses, pathWith } from './judge.ts';
import { soup } from './soup.ts';

/** Generated texts that are run; about as many more are made up that nothing is done to. */
const GENERATED = 2000;
const SOUP = 300;
export const SEED = 20;

/** Texts that bash runs as they were written and as they were rewritten, and how many nothing was done to. */
export interface Pairs {
  pairs: Pair[];
  untouched: number;
}

export function writtenPairs(bin: string): Pairs {
  const texts = corpus.map(({ text }) => text);
  return changed(texts, Number.POSITIVE_INFINITY, bin);
}

export function generatedPairs(bin: string): Pairs {
  return changed(generated(SEED), GENERATED, bin);
}

/** Pairs from generated token soup that bash parses. */
export function soupPairs(bin: string): Pairs {
  const { pairs, untouched } = changed(soup(SEED), SOUP, bin);
  return { pairs: pairs.filter(({ rewritten }) => parses(rewritten, bin)), untouched };
}

function changed(texts: Iterable<string>, most: number, bin: string): Pairs {
  const pairs: Pair[] = [];
  let untouched = 0;
  for (const original of texts) {
    // No relative path of a text names anything there.
    const rewritten = rewriteForBash(original, { PATH: pathWith(bin) }, bin);
    if (rewritten === original) untouched += 1;
    else pairs.push({ original, rewritten });
    if (pairs.length === most) break;
  }
  return { pairs, untouched };
}
