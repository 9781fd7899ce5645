import type { Cli, ClusterFlags } from '../cli.ts';
import { type CliError, refused } from '../errors.ts';

/** A server of the HTTP API, as flags or the environment name it. */
export interface ChosenServer {
  url: string;
  from: '--server' | 'BERTH_SERVER';
  tokenFile?: string | undefined;
}

/**
 * Returns the server that the flags choose, or BERTH_SERVER where no flag chooses a cluster; undefined where a kubeconfig is
 * used. Refuses flags that choose both.
 */
export function chosenServer(flags: ClusterFlags, { env }: Pick<Cli, 'env'>): ChosenServer | undefined {
  const ofKubeconfig = flags.kubeconfig !== undefined ? '--kubeconfig' : flags.context !== undefined && '--context';
  if (flags.server !== undefined && ofKubeconfig) {
    throw refused(`--server and ${ofKubeconfig} name two ways to sessions; leave one of them out`);
  }
  const tokenFile = flags.tokenFile ?? (env.BERTH_TOKEN_FILE || undefined);
  if (flags.server !== undefined) return { url: flags.server, from: '--server', tokenFile };
  if (env.BERTH_SERVER && !ofKubeconfig) return { url: env.BERTH_SERVER, from: 'BERTH_SERVER', tokenFile };
  const needless = serverFlag(flags);
  if (needless) throw refused(`${needless} is for a server of the HTTP API; name it with --server or BERTH_SERVER`);
  return undefined;
}

function serverFlag(flags: ClusterFlags): string | undefined {
  if (flags.tokenFile !== undefined) return '--token-file';
  if (flags.certificateAuthority !== undefined) return '--certificate-authority';
  return flags.allowPlainText ? '--allow-plain-text' : undefined;
}

/** The refusal of a command that the HTTP API has nothing for. */
export function needsKubeconfig(command: string, from: ChosenServer['from'], instead?: string): CliError {
  const other = instead ?? 'use a kubeconfig: --kubeconfig FILE or --context NAME';
  const without = from === '--server' ? 'without --server' : 'which take precedence over BERTH_SERVER';
  return refused(`${command} does not work through the HTTP API, which ${from} names; ${other}, ${without}`);
}
