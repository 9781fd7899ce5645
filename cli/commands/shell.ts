import { EnterError } from '../../core/enter/client.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import { followOnTerminal } from '../enter/on-terminal.ts';
import { failed, refused } from '../errors.ts';
import { enter, newId } from './exec.ts';

export interface ShellFlags extends ClusterFlags {
  /** Program that is the shell, found in the image as `exec` finds one. */
  shell: string;
}

/** Opens a login shell inside a session, on the caller's terminal. Resolves with its exit code, and with 255 where the way to it failed. */
export async function shell(name: string, { shell: program, ...flags }: ShellFlags, cli: Cli): Promise<number> {
  const instead = `${cli.name} exec ${name} -- PROGRAM ARGS…`;
  if (!cli.console) {
    throw refused(`shell needs a terminal, and stdin or stdout is none; run one program with: ${instead}`);
  }
  const id = newId(cli);
  return enter(name, flags, cli, async (entered) => {
    try {
      return await followOnTerminal(entered, { id, start: { command: [program, '-l'] } }, cli);
    } catch (error) {
      if (!(error instanceof EnterError) || error.code !== 'CommandFailed') throw error;
      const hint = `name a shell of its image with --shell, or run one program with: ${instead}`;
      throw failed(`session ${name} has no shell ${program} that runs (${error.message}); ${hint}`);
    }
  });
}
