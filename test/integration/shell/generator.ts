// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell, not TypeScript
/** Makes up shell texts around background lists, the same ones for the same seed. */
import { seededRandom } from '../../support/random.ts';

/** Texts in a row, each deterministic in all that it prints, and short-lived. */
export function* generated(seed: number): Generator<string> {
  const random = seededRandom(seed);
  for (;;) yield new Script(() => random.uniform()).text();
}

class Script {
  readonly #uniform: () => number;
  #tags = 0;
  #depth = 0;
  /** Bodies of the here-documents that the current line has begun. */
  #bodies: string[] = [];

  constructor(uniform: () => number) {
    this.#uniform = uniform;
  }

  text(): string {
    const prelude = this.#pick([
      '',
      '',
      '',
      '',
      'set -e\n',
      'set -u\n',
      'set -euo pipefail\n',
      'x="a b"\n',
      'shopt -s nullglob\n',
      "trap 'echo bye' EXIT\n",
      'f() { echo f "$@"; }\n',
      '# A && B &\n',
      'set -f;',
    ]);
    const statements = this.#many(1, 2, () => this.#statement());
    return `${prelude}${statements.join('\n')}\nwait; echo "end $? in \${PWD##*/}"${this.#pick(['', '\n'])}`;
  }

  #pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#uniform() * items.length)] as T;
  }

  #chance(share: number): boolean {
    return this.#uniform() < share;
  }

  #many<T>(least: number, most: number, make: () => T): T[] {
    return Array.from({ length: least + Math.floor(this.#uniform() * (most - least + 1)) }, make);
  }

  /** Makes one or more lines, without a final line feed. */
  #statement(): string {
    if (this.#chance(0.15)) return this.#noise();
    if (this.#depth >= 2 || this.#chance(0.6)) return this.#background();
    this.#depth += 1;
    const inner = () => this.#many(1, 1.3, () => this.#statement()).join('\n');
    const statement = this.#pick([
      () => `if ${this.#plain()}; then\n${inner()}\nelse\n${inner()}\nfi`,
      () => `for i in 1 2; do\n${inner()}\ndone`,
      () => `n=0; while [ $((n += 1)) -lt 3 ]; do\n${inner()}\ndone`,
      () => `{\n${inner()}\n}`,
      () => `(\n${inner()}\nwait\n)`,
      () => `case "a && b &" in a*)\n${inner()}\n;;\n*) echo no;; esac`,
      () => `g() {\n${inner()}\n}\ng x`,
      () => `echo "$(\n${inner()}\nwait)"`,
      () => `y=$(${this.#background()}\nwait\n); echo "$y"`,
      () => `{\n${inner()}\nwait\n} | cat`,
      () => `echo \`${inner().replaceAll(/[\\`$]/g, '\\$&')}\nwait\``,
      () => `if ${this.#list()} & then wait; fi${this.#heredocs()}`,
      () => `cat <<-EOT\n\t$(\n${inner()}\nwait)\n\tEOT`,
    ])();
    this.#depth -= 1;
    return statement;
  }

  /** A background list, waited for before anybody else prints. */
  #background(): string {
    const tag = `t${this.#tags}`;
    const list = this.#list();
    const amp = this.#pick([' &', '&', '  & ', ' \\\n&']);
    const after = this.#pick([
      'wait',
      'wait $!; echo "st $?"',
      'echo "now $?" >> m; wait $!; echo "st $?" >> m',
      `echo "${tag} $! $BASHPID" >> "$BANGS"; wait $!; echo "st $?"`,
      `echo "${tag} $! $BASHPID" >> "$BANGS"; wait`,
      `b=$!; echo "${tag} $b $BASHPID" >> "$BANGS"; wait "$b" || echo "st $?"`,
      'p=$!; wait "$p" || echo "bad $?"',
      'jobs -p >/dev/null; wait',
      'wait # && B &',
    ]);
    // Text on the line of the list precedes the bodies of its here-documents.
    return this.#bodies.length || this.#chance(0.5)
      ? `${list}${amp}${this.#heredocs()}\n${after}`
      : `${list}${amp} ${after}`;
  }

  #heredocs(): string {
    const bodies = this.#bodies;
    this.#bodies = [];
    return bodies.map((body) => `\n${body}`).join('');
  }

  #list(): string {
    let list = this.#element();
    for (const _ of this.#many(0, 2, () => 0)) list += this.#operator() + this.#element();
    return list + this.#operator() + this.#last();
  }

  #operator(): string {
    const word = this.#pick(['&&', '&&', '||']);
    if (this.#bodies.length) return ` ${word} `;
    return this.#pick([` ${word} `, word, ` ${word}\n`, ` ${word} # x && y &\n  `, ` ${word} \\\n`]);
  }

  #plain(): string {
    return this.#pick(['true', 'false', '[ -f f1 ]', '[[ a && b ]]', '(( 1 && 0 ))', '! false', ':', '[ "x&&y" = z ]']);
  }

  #element(): string {
    return this.#pick([
      () => this.#plain(),
      () => this.#plain(),
      () => this.#plain(),
      () => 'cd d',
      () => 'export FOO=7',
      () => 'x=1',
      () => 'umask 027',
      () => '{ echo x; true; }',
      () => '( exit 3 )',
      () => 'echo hi | cat',
      () => 'read -r line < f1',
      () => `echo "a && b &" ${this.#word()}`,
      () => '[[ x =~ ^x && ! -d nope ]]',
      () => 'if true; then echo t; fi',
      () => 'exec 3>log',
      () => `probe A${this.#words()}`,
      () => 'cat f1',
      () => 'test -d /',
      () => 'f',
      () => '{ : & }',
      () => 'cat <(echo sub)',
      () => 'eval "echo e"',
      () => 'set +e',
      () => 'exit 4',
      () => 'time true',
    ])();
  }

  #last(): string {
    const tag = `t${this.#tags++}`;
    const external = () => {
      const assignments = this.#chance(0.3)
        ? this.#pick([
            'FOO=5 ',
            'CODE=3 ',
            'FOO="a b" BAR=$x$FOO ',
            'BAR=$(echo s) ',
            'LC_ALL=C ',
            'FOO+=x ',
            'CODE=7 FOO=`echo q` ',
          ])
        : '';
      const before = this.#chance(0.15) ? `${this.#redirection()} ` : '';
      const after = this.#chance(0.5) ? ` ${this.#redirection()}` : '';
      return `${assignments}${before}probe ${tag}${this.#words()}${after}`;
    };
    if (this.#chance(0.72)) return external();
    return this.#pick([
      () => `cat ${this.#redirection()} f1`,
      () => `cat <<E${this.#heredoc('E')}`,
      () => `cat <<'E' >log${this.#heredoc('E')}`,
      () => 'cat <<< "a && b & $FOO"',
      () => `env FOO=9 probe ${tag}${this.#words()}`,
      () => `nice probe ${tag}`,
      () => `"probe" ${tag}`,
      () => `\\probe ${tag}`,
      () => `command probe ${tag}`,
      () => `./run.sh ${tag}`,
      () => './bare',
      () => 'd/../run.sh',
      () => `echo builtin ${this.#word()}`,
      () => `f ${this.#word()}`,
      () => `( probe ${tag} )`,
      () => `{ probe ${tag}; }`,
      () => `probe ${tag} | cat`,
      () => `! probe ${tag}`,
      () => `p=probe; $p ${tag}`,
      () => 'nosuchprogram x',
      () => '/no/such/program',
      () => 'x=5',
      () => '>made',
      () => `probe ${tag} <(echo s) >/dev/null`,
      () => 'exit 5',
      () => 'ls /proc/self/fd 5>log',
      () => 'sh -c "echo \\$0 \\$# \\$FOO; exit 6" && : ',
      () => "sh -c 'pwd; exit 6' a b",
      () => 'readlink /proc/self/fd/0',
      () => 'grep -c . f1',
      () => 'printenv FOO',
      () => '[[ a && b ]]',
    ])();
  }

  #heredoc(delimiter: string): string {
    this.#bodies.push(`body && $FOO & \${x-d} $((1 && 0))\n$(echo in && echo side)\n${delimiter}`);
    return '';
  }

  #redirection(): string {
    return this.#pick([
      '>out',
      '>>out',
      '2>&1',
      '<f1',
      '>out 2>&1',
      '2>/dev/null',
      '3>log 1>&3',
      '&>out',
      '>"o u t"',
      '>d/x',
      '</dev/null',
      '>&2',
      '<<<"&& x &"',
      '>|out',
      '2>err >&2',
      '> /no/such/folder',
      '1<>rw',
      '{v}>var',
      '9>nine',
    ]);
  }

  #words(): string {
    return this.#many(0, 3, () => ` ${this.#word()}`).join('');
  }

  #word(): string {
    return this.#pick([
      'a',
      '-x',
      '"a && b &"',
      "'c || d &'",
      "$'e\\'f && g &'",
      '$(( 1 && 2 ))',
      '${x:-A && B &}',
      '${x-"q && r"}',
      '"$(echo h && echo i)"',
      '`echo j && echo k`',
      '$?',
      '"$x"',
      '$FOO',
      // Patterns match no file that the foreground makes: a list in the background may or may not see such a file.
      '[df]*',
      'd*',
      '[ab]',
      '{1,2}',
      '~',
      'a=b',
      'a\\&b',
      '\\&\\&',
      '"#no"',
      'a#b',
      '--',
      '-n',
      '$#',
      '${#x}',
      '"${x:+ y && z & }"',
      "$'\\x26\\x26'",
      '""',
      '%s',
      '!',
      '"`echo l`"',
      '$"m && n"',
      '"\\"&& &"',
      '&&'.replaceAll('&', '\\&'),
      '${x//a/&&}',
      '"$@"',
      '<(:)'.slice(4) || 'z',
      'é&'.replace('&', ''),
      '"$((3 > 2 && 1))"',
      '$(echo "x)" && echo y)',
      '$(case a in a) echo c;; esac)',
    ]);
  }

  /** Text in which `&&` and `&` are anything but a background list. */
  #noise(): string {
    return this.#pick([
      'echo "A && B &"',
      "echo 'A || B &'",
      "echo $'A && B\\' &'",
      'echo ${nope:-A && probe no &}',
      '[[ a && b ]] && echo yes',
      'echo $(( 1 && 0 )) $(( 6 & 3 ))',
      'echo $[ 1 && 1 ]',
      'a[1&&2]=x; echo "${a[1]} ${#a[@]}"',
      'a=(x "y && z" w); echo "${a[@]}"',
      'cat <<E\nA && probe no &\n${FOO-x && y &}\nE',
      "cat <<'E'\n$(A && probe no &)\n`\nE",
      'cat <<-E\n\tA && probe no &\n\tE',
      "echo 'it'\\''s && probe no &'",
      'case "a&&b&" in a\\&\\&b\\&) echo m;; *) echo n;; esac',
      'case x in a|x) echo "p && q &";; esac',
      'true && echo a # && probe no &',
      'echo a#b && echo c',
      '(( 1 && 1 )) && echo t',
      'for ((i = 0; i < 2 && i < 9; i++)); do echo $i; done',
      'echo a &>> both; cat both',
      'echo "$(echo "nested && &" && echo x)"',
      'echo `echo "b && &"`',
      'echo "${x-`echo q && echo r`}"',
      'let "z = 1 && 0"; echo $z $?',
      'true & wait; echo $?',
      '{ true && echo grouped; } & wait',
      '(true && echo sub) & wait',
      'true && echo piped | cat & wait',
      'eval "true && probe ev & wait"',
      "bash -c 'true && probe inner & wait'",
      'echo "\\`" "\\$(" \'`\' && echo ok',
      'echo ${FOO:+"}"} \'}\' "}" && true',
      'h() { true && probe h "$@" & wait $!; }; h 1 "2 3"',
      'echo !x && echo "^y"',
      'select q in a b; do break; done </dev/null',
      'until true && probe u; do :; done',
      'echo $((`echo 1` && $(echo 0)))',
      '[[ "a && b &" == *"&"* || x ]] && echo match',
      'x="$(cat <<E\nA && probe no & $(echo v)\nE\n)"; echo "$x"',
    ]);
  }
}
