import { afterAll, beforeAll, test } from 'vitest';
import type { Images } from '../../local/kubelet/types.ts';
import { Installation } from './installation.ts';

/**
 * Returns an installation that begins before the tests of the enclosing suite and is stopped after them. `controller`
 * starts one controller with it; `images`: further images.
 *
 * The installation is a value of the suite and no fixture of `test.extend`: most suites have helpers of their own around
 * it, which would have to be handed the fixture by every test.
 */
export function installed(
  env: Record<string, string> = {},
  options: { controller?: boolean; images?: Images } = {},
): Installation {
  const installation = new Installation(env, options.images);
  beforeAll(async () => {
    await installation.begin();
    if (options.controller) installation.startController();
  });
  afterAll(() => installation.stop());
  return installation;
}

/**
 * A test with an installation of its own, without a controller. Tests that kill the controller, or limit how much runs, can
 * run side by side this way.
 */
export function testInstalled(
  name: string,
  run: (cluster: Installation) => Promise<void>,
  env: Record<string, string> = {},
): void {
  test(name, async () => {
    const cluster = new Installation(env);
    try {
      await run(await cluster.begin());
    } finally {
      await cluster.stop();
    }
  });
}
