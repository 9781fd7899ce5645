import { afterAll, beforeAll } from 'vitest';
import { Installation } from './installation.ts';

/**
 * Returns an installation that begins before the tests of the enclosing suite and is stopped after them. `controller`
 * starts one controller with it.
 *
 * The installation is a value of the suite and no fixture of `test.extend`: most suites have helpers of their own around
 * it, which would have to be handed the fixture by every test.
 */
export function installed(env: Record<string, string> = {}, options: { controller?: boolean } = {}): Installation {
  const installation = new Installation(env);
  beforeAll(async () => {
    await installation.begin();
    if (options.controller) installation.startController();
  });
  afterAll(() => installation.stop());
  return installation;
}
