/** Main module of the program `local`; `config.ts` has its flags. */

import { JournalLost } from './apiserver/store/journal.ts';
import { down, status, upDetached } from './background.ts';
import { type LocalConfig, readConfig, USAGE, UsageError } from './config.ts';
import { AlreadyRunning, type ClusterState, Home, HomeUnusable } from './home.ts';
import { LocalError } from './leftovers.ts';
import { movedPorts } from './ports.ts';

const NOT_ISOLATED = 'Its pods are processes of this machine: they are not isolated from it.';

async function run(config: LocalConfig): Promise<number> {
  const home = new Home(config.home);
  const { kubeconfig } = home;
  switch (config.command) {
    case 'kubeconfig':
      console.log(kubeconfig);
      return 0;
    case 'status': {
      const state = status(config);
      if (state) console.log(config.output === 'json' ? JSON.stringify(state) : described(state, kubeconfig));
      else console.error(`no embedded cluster runs in ${config.home}; start one with "berth local up --detach"`);
      return state ? 0 : 1;
    }
    case 'down': {
      const ran = await down(config);
      console.error(ran ? 'The embedded cluster is stopped.' : `No embedded cluster ran in ${config.home}.`);
      return 0;
    }
    case 'up':
      if (config.detach) {
        const last = home.ports();
        const state = await upDetached(config);
        for (const line of movedPorts(last, config, state)) console.error(line);
        console.log(kubeconfig);
      } else await foreground(config, home);
      return 0;
  }
}

async function foreground(config: LocalConfig, home: Home): Promise<void> {
  // Modules for a running cluster are loaded here: the other commands answer without waiting for them.
  const [{ programLog }, { systemClock, systemRandom }, { up }] = await Promise.all([
    import('../core/program/log.ts'),
    import('../core/system.ts'),
    import('./up.ts'),
  ]);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort());
  const logger = programLog(2, 'warn');
  const last = home.ports();
  await up({
    config,
    deps: { clock: systemClock, random: systemRandom, logger },
    signal: stop.signal,
    onReady(state) {
      for (const line of movedPorts(last, config, state)) console.error(line);
      console.log(`The embedded cluster is ready. ${NOT_ISOLATED}`);
      console.log(described(state, home.kubeconfig).replaceAll(/^/gm, '  '));
    },
  });
}

/** Returns the addresses of the cluster and the files that let programs in, a line each. */
function described({ url, apiUrl, apiTokenFile, metricsUrl }: ClusterState, kubeconfig: string): string {
  const rows = [
    ['Kubernetes API', url],
    ['kubeconfig', kubeconfig],
    ['HTTP API', apiUrl],
    ...(apiTokenFile ? [['token file', apiTokenFile]] : []),
    ...(metricsUrl ? [['metrics', metricsUrl]] : []),
  ];
  return rows.map(([what = '', where]) => `${what.padEnd(16)}${where}`).join('\n');
}

function isExpected(error: unknown): error is Error {
  return [AlreadyRunning, HomeUnusable, LocalError, JournalLost].some((expected) => error instanceof expected);
}

try {
  const config = readConfig(process.argv.slice(2), process.env);
  if (typeof config === 'string') process.stdout.write(config);
  else process.exitCode = await run(config);
} catch (error) {
  if (error instanceof UsageError) {
    console.error(`${error.message}\n\n${USAGE}`);
    process.exitCode = 2;
  } else {
    console.error(isExpected(error) ? error.message : error);
    process.exitCode = 1;
  }
}
