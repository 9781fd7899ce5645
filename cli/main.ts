/** The program `berth`, also `kubectl session`. */

import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

// A third of the start is reading TypeScript; what was read is kept, in the user's own folder because it is executed.
enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'berth', 'compiled'));

const { main } = await import('./program.ts');
process.exitCode = await main(process.argv.slice(2));
