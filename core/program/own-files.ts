/**
 * Berth's own files in a checkout, where Node runs the TypeScript as it is, and in the package that `make package` makes,
 * where each program is a bundle in `lib`.
 */
import { join } from 'node:path';

const isCheckout = import.meta.filename.endsWith('.ts');
const ROOT = join(import.meta.dirname, ...(isCheckout ? ['..', '..'] : ['..']));

/** Returns the absolute path of a file that has the same place in a checkout and in the package. */
export const ownFile = (path: string): string => join(ROOT, path);

/** Returns the absolute path of what `make keeper` builds from C; it need not be there. */
export const builtFile = (name: string): string => ownFile(join(isCheckout ? 'build' : 'lib', name));

/** Returns the absolute path of a program's main module. */
export function mainModule(program: 'api' | 'controller' | 'local' | 'runner'): string {
  if (isCheckout) return ownFile(`${program}/main.ts`);
  return ownFile(`lib/${program}.${program === 'runner' ? 'cjs' : 'js'}`);
}
