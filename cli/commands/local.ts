import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, realpathSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';
import { embeddedIsRunning, embeddedKubeconfig, homeFolder } from '../../core/embedded.ts';
import { mainModule } from '../../core/program/own-files.ts';
import type { Cli } from '../cli.ts';
import { unreachable } from '../errors.ts';

/** Runs the program `local`, which is the embedded cluster, and returns its exit code. */
export async function local(args: string[], cli: Cli): Promise<number> {
  const child = spawn(process.execPath, [...process.execArgv, mainModule('local'), ...args], {
    stdio: 'inherit',
    env: cli.env,
  });
  const forward = () => child.kill('SIGTERM');
  // Ctrl-C reaches the child by itself, because it is in the terminal's process group; a kill of this process does not.
  cli.interrupted.addEventListener('abort', forward, { once: true });
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  if (args.includes('up') && args.includes('--detach') && code === 0 && isHidden(cli)) {
    cli.say(
      `KUBECONFIG names another file: ${cli.name} goes on using it. To use this cluster: unset KUBECONFIG, or --kubeconfig`,
    );
  }
  return code ?? (signal === 'SIGINT' ? 130 : 1);
}

/** True if KUBECONFIG leads later commands past the embedded cluster: of its files the first that exists decides. */
function isHidden({ env, cwd }: Cli): boolean {
  if (!env.KUBECONFIG) return false;
  const files = env.KUBECONFIG.split(delimiter).filter((file) => file !== '');
  const first = files.map((file) => resolve(cwd, file)).find((file) => existsSync(file));
  return first === undefined || realpathSync(first) !== realpathSync(embeddedKubeconfig(homeFolder(env)));
}

/** Prints the path of the running embedded cluster's kubeconfig. */
export async function localKubeconfig(cli: Cli): Promise<number> {
  const home = homeFolder(cli.env);
  if (!embeddedIsRunning(home)) {
    throw unreachable(`no embedded cluster runs in ${home}; start one with: ${cli.name} local up --detach`);
  }
  await cli.out(`${embeddedKubeconfig(home)}\n`);
  return 0;
}
