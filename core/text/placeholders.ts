const PLACEHOLDER = /\$(\$?)\(([A-Za-z_][A-Za-z0-9_.-]*)\)/g;

/**
 * Replaces each `$(NAME)` for which `value` knows a text; `$$(NAME)` stands for the plain text `$(NAME)`, and an unknown
 * one is left as it is, both as in a container's command. What is put in is not looked at again.
 */
export function expand(text: string, value: (name: string) => string | undefined): string {
  return text.replace(PLACEHOLDER, (whole, escaped: string, name: string) => {
    if (escaped) return whole.slice(1);
    return value(name) ?? whole;
  });
}

/** Whether `$(name)` stands for a turn's input, or a field of it, in arguments that are given it. */
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
