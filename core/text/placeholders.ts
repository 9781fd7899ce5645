const PLACEHOLDER = /\$(\$?)\(([A-Za-z_][A-Za-z0-9_.-]*)\)/g;

/**
 * Replaces each `$(NAME)` for which `value` returns a text. `$$(NAME)` stands for the plain text `$(NAME)`, and an
 * unknown name is left as it is, both as in a container's command. The inserted text is not searched again.
 */
export function expand(text: string, value: (name: string) => string | undefined): string {
  return text.replace(PLACEHOLDER, (whole, escaped: string, name: string) => {
    if (escaped) return whole.slice(1);
    return value(name) ?? whole;
  });
}

/** Reports whether `$(name)` stands for a turn's input, or a field of it, in arguments that get the input. */
export const isInput = (name: string): boolean => name === 'INPUT' || name.startsWith('INPUT.');

export function namesInput(args: string[]): boolean {
  let found = false;
  for (const arg of args) {
    expand(arg, (name) => {
      found ||= isInput(name);
      return undefined;
    });
  }
  return found;
}
