/**
 * Completion scripts of the shells. Each asks `berth __complete -- WORDS…`, whose first line is `files` where the last
 * word is a path and `words` otherwise; every other line is a candidate and, after a tab, its description.
 */

const BASH = `# bash completion of berth. To use it: source <(berth completion bash)
_berth() {
  local word kind line tab=$'\\t'
  local -a words=()
  COMPREPLY=()
  # Bash cuts words at "="; they are joined again.
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if ((\${#words[@]} > 0)) && [[ $word == = || \${words[-1]} == *= && $word != -* ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
  done
  ((\${#words[@]} > 0)) || words=("")
  local current=\${words[-1]}
  local cut=
  [[ $current == *=* && $COMP_WORDBREAKS == *=* ]] && cut=\${current%=*}=
  while IFS= read -r line; do
    if [[ -z $kind ]]; then
      kind=$line
    else
      line=\${line%%"$tab"*}
      [[ $line == "$current"* ]] && COMPREPLY+=("\${line#"$cut"}")
    fi
  done < <("\${COMP_WORDS[0]}" __complete -- "\${words[@]}" 2>/dev/null)
  [[ $kind == files ]] && compopt -o default 2>/dev/null
  return 0
}
complete -F _berth berth
`;

const ZSH = `#compdef berth
# zsh completion of berth. To use it: source <(berth completion zsh)
_berth() {
  local line tab=$'\\t'
  local -a lines described
  lines=("\${(@f)$("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ \${lines[1]} == files ]]; then
    _files
    return
  fi
  for line in "\${(@)lines[2,-1]}"; do
    if [[ $line == *$tab* ]]; then
      described+=("\${\${line%%$tab*}//:/\\\\:}:\${line#*$tab}")
    else
      described+=("\${line//:/\\\\:}")
    fi
  done
  _describe -t berth berth described
}
compdef _berth berth
`;

const FISH = `# fish completion of berth. To use it: berth completion fish | source
function __berth_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l lines ($words[1] __complete -- $words[2..-1] 2>/dev/null)
  if test "$lines[1]" = files
    __fish_complete_path (commandline -ct)
    return
  end
  for line in $lines[2..-1]
    echo $line
  end
end
complete -c berth -f -a '(__berth_complete)'
`;

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

export const SCRIPTS: Record<Shell, string> = { bash: BASH, zsh: ZSH, fish: FISH };
