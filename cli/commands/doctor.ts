import type { Cli, ClusterFlags } from '../cli.ts';
import { withCluster, withKubernetes } from '../connect/connect.ts';
import type { Finding } from '../doctor/finding.ts';
import { CliError, describeError, EXIT } from '../errors.ts';
import { printableLine } from '../print/printable.ts';
import { chosenServer } from '../server/chosen.ts';

export interface DoctorFlags extends ClusterFlags {
  output?: 'json';
}

/** Checks an installation as the caller sees it, and prints a line for each finding. Resolves with 1 where one is an error. */
export async function doctor(flags: DoctorFlags, cli: Cli): Promise<number> {
  const found = await findings(flags, cli);
  await cli.out(flags.output ? `${JSON.stringify({ findings: found }, null, 2)}\n` : found.map(lineOf).join(''));
  return found.some(({ level }) => level === 'error') ? EXIT.failed : EXIT.ok;
}

async function findings(flags: DoctorFlags, cli: Cli): Promise<Finding[]> {
  const server = chosenServer(flags, cli);
  try {
    const { checkCluster, checkServer } = await import('../doctor/checks.ts');
    if (server) return await withCluster(flags, cli, (cluster) => checkServer(cluster, cli));
    return await withKubernetes('doctor', flags, cli, (cluster) => checkCluster(cluster, cli));
  } catch (error) {
    cli.interrupted.throwIfAborted();
    if (error instanceof CliError && error.exitCode === EXIT.refused) throw error;
    const [message = '', ...act] = describeError(error, cli).message.split('\n');
    const check = server ? 'api' : 'cluster';
    return [{ check, level: 'error', message, ...(act.length > 0 ? { act: act.join(' ') } : {}) }];
  }
}

function lineOf({ check, level, message, act }: Finding): string {
  const text = act ? `${message}. To do: ${act}` : message;
  return `${level.padEnd(8)} ${check.padEnd(11)} ${printableLine(text.replace(/\s+/g, ' '))}\n`;
}
