/**
 * Heuristics that guess a secret by the text before it: `key=`, `token=`, `secret=`, `password=` (any case, space
 * around the `=`), `Bearer`, and `sk-`. A guess is sometimes wrong, because source code is full of `key=`. So guesses
 * are for error texts and logs.
 */
interface Heuristic {
  /** Matches the place where the hidden text begins; the first group, which stays readable, stands before it. */
  begin: RegExp;
  /** The hidden text ends before the first character of this kind. */
  end: RegExp;
}

const SPACE = /\s/g;

export const heuristics: readonly Heuristic[] = [
  // `key` does not count at the end of another word (monkey=), unless that says what the key is for (apikey=,
  // accessKey=).
  {
    begin:
      /((?:(?<![A-Za-z0-9])[Kk][Ee][Yy]|(?<=[Aa][Pp][Ii])[Kk][Ee][Yy]|(?<=[a-z0-9])Key)[ \t]{0,16}:?=(?!=)[ \t]{0,16}["']?)(?=\S{8})/g,
    end: SPACE,
  },
  { begin: /((?:token|secret|password)[ \t]{0,16}:?=(?!=)[ \t]{0,16}["']?)(?=\S{6})/gi, end: SPACE },
  { begin: /((?<![A-Za-z0-9])Bearer[ \t]{1,16})(?=\S{6})/g, end: SPACE },
  // `sk-` does not count inside a word (task-management).
  { begin: /()(?<![A-Za-z0-9])sk-(?=[A-Za-z0-9_-]{10})/g, end: /[^A-Za-z0-9_-]/g },
];

/** Upper bound of the characters before and after a place that decide whether a match begins there. */
export const HEURISTIC_CHARS = 64;
