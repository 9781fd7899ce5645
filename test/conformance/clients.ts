/** The interpreters of scenarios. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const HERE = import.meta.dirname;
const CLIENTS = join(HERE, '../../clients');

export interface Client {
  name: string;
  command: readonly string[];
  /** Environment of the process; nothing else of this one reaches it. `folder` is its home. */
  env: (folder: string) => Record<string, string>;
}

export const TYPESCRIPT: Client = {
  name: 'typescript',
  command: [process.execPath, '--disable-warning=ExperimentalWarning', join(HERE, 'typescript/main.ts')],
  env: (folder) => ({
    HOME: folder,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), 'berth-test-compile-cache'),
  }),
};

/** Returns a half of the Python client; `python` is a Python that has what it needs. */
export const pythonClient = (half: 'python' | 'python-sync', python: string, name: string = half): Client => ({
  name,
  command: [python, '-W', 'error', join(HERE, 'python/main.py'), half === 'python' ? 'async' : 'sync'],
  env: (folder) => ({
    HOME: folder,
    PYTHONPATH: join(CLIENTS, 'python/src'),
    // Nothing is written beside the sources.
    PYTHONPYCACHEPREFIX: join(tmpdir(), 'berth-test-python-cache'),
    PYTHONUTF8: '1',
  }),
});
