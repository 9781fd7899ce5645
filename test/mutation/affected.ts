import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** Test files that import a file directly or through others, the nearest first. */
export class Imports {
  readonly #root: string;
  readonly #tests: readonly string[];
  readonly #imports = new Map<string, string[]>();

  /** Paths are relative to `root`. */
  constructor(root: string, tests: readonly string[]) {
    this.#root = root;
    this.#tests = tests;
  }

  testsOf(file: string): string[] {
    const found: { test: string; distance: number }[] = [];
    for (const test of this.#tests) {
      const distance = this.#distance(test, file);
      if (distance !== undefined) found.push({ test, distance });
    }
    return found.sort((a, b) => a.distance - b.distance).map(({ test }) => test);
  }

  #distance(from: string, to: string): number | undefined {
    const seen = new Set([from]);
    let level = [from];
    for (let distance = 0; level.length > 0; distance++) {
      if (level.includes(to)) return distance;
      const next: string[] = [];
      for (const imported of level.flatMap((file) => this.#importsOf(file))) {
        if (seen.has(imported)) continue;
        seen.add(imported);
        next.push(imported);
      }
      level = next;
    }
    return undefined;
  }

  #importsOf(file: string): string[] {
    let imports = this.#imports.get(file);
    if (!imports) {
      const text = readFileSync(join(this.#root, file), 'utf8');
      const specifiers = [...text.matchAll(/^(?:import|export)(?! type)\b[^;]*?from '(\.[^']+\.ts)';/gms)].map(
        (m) => m[1]!,
      );
      imports = specifiers.map((specifier) => normalize(join(dirname(file), specifier)));
      this.#imports.set(file, imports);
    }
    return imports;
  }
}
