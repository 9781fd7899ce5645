// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell, not TypeScript
/** Words of the shell's grammar in any order around one background list: where a parser and bash may part ways. */
import { seededRandom } from '../../support/random.ts';

const WORDS = [
  ...[
    'true',
    'false',
    ':',
    'probe',
    'x=1',
    '"a b"',
    "'c && probe q &'",
    '$x',
    '${x}',
    '${x:-',
    '}',
    '"',
    '"',
    "'",
    "$'",
    '$"',
  ],
  ...[
    '`',
    '`',
    '$(',
    '$(',
    ')',
    ')',
    '(',
    '(',
    '$((',
    '))',
    '((',
    '[[',
    ']]',
    '==',
    '=~',
    '{',
    '}',
    ';',
    '&&',
    '||',
    '&',
    '&',
  ],
  ...[
    '|',
    '\n',
    '\n',
    '#',
    '\\',
    '>o',
    '<f1',
    '2>&1',
    '<<E\n',
    '\nE\n',
    '<<<',
    'case',
    'in',
    'a)',
    ';;',
    'esac',
    'a|b)',
    'if',
  ],
  ...[
    'then',
    'fi',
    'else',
    '!',
    '[',
    '1',
    '+',
    'a[1',
    'a=(',
    '[df]*',
    '{a,',
    'b}',
    '-',
    '%',
    '$',
    '"$x"',
    '"`echo',
    '<(',
    'echo',
  ],
  ...[
    'cat f1',
    'cat',
    'f()',
    'for i in 1 2',
    'do',
    'done',
    '&&\n',
    'time',
    '~',
    '=',
    '\t',
    'é',
    '@(',
    '!(',
    'test',
    '$[1',
    ']',
  ],
];

/** The same texts for the same seed. Several processes may print at once: lines come in any order. */
export function* soup(seed: number): Generator<string> {
  const random = seededRandom(seed);
  const pick = (items: readonly string[]) => items[Math.floor(random.uniform() * items.length)] as string;
  for (;;) {
    const words = Array.from(
      { length: 1 + Math.floor(random.uniform() * 14) },
      () => pick(WORDS) + pick(['', ' ', ' ']),
    );
    const before = words.join('');
    const after = pick(['', '\n', `; ${pick(WORDS)}`, ')', '"', "'", `\n${pick(WORDS)} ${pick(WORDS)}`]);
    yield random.uniform() < 0.7
      ? `${before}${pick(['\n', '; ', ' '])}true && probe end & wait${after}`
      : `true && probe begin & wait; ${before}\nwait`;
  }
}
