/** Loaded with `--import`: gives one file its mutant as it is imported. No file is written. */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { applied, type Mutant } from './mutants.ts';

const mutant = JSON.parse(process.env.BERTH_MUTANT ?? 'null') as Mutant | null;
if (mutant) {
  const mutated = new URL(`../../${mutant.file}`, import.meta.url).href;
  registerHooks({
    load(url, context, nextLoad) {
      if (url !== mutated) return nextLoad(url, context);
      const source = applied(readFileSync(fileURLToPath(url), 'utf8'), mutant);
      return { format: 'module-typescript', source, shortCircuit: true };
    },
  });
}
