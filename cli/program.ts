import { Command, CommanderError } from 'commander';
import { VERSION } from '../core/program/version.ts';
import type { Cli } from './cli.ts';
import { defineArtifacts } from './define/artifacts.ts';
import { commandAdder } from './define/command.ts';
import { defineEnv } from './define/env.ts';
import { defineExec } from './define/exec.ts';
import { defineFiles } from './define/files.ts';
import { defineLocal } from './define/local.ts';
import { definePorts } from './define/ports.ts';
import { defineSessions } from './define/sessions.ts';
import { defineComplete, defineTools } from './define/tools.ts';
import { defineTurns } from './define/turns.ts';
import { defineViews } from './define/views.ts';
import { describeError, EXIT, Interrupted, OutputLost, refused } from './errors.ts';
import { name } from './input/flags.ts';
import { systemCli } from './system.ts';

/** Runs a command line; resolves with the exit code. */
export async function main(args: string[]): Promise<number> {
  const cli = systemCli();
  let exitCode: number = EXIT.ok;
  const setCode = (code: number) => {
    exitCode = code;
  };
  const program = define(cli, setCode, args);
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.refused;
    const described = describeError(error, cli);
    // The message is not needed after the user's own Ctrl-C; that of a lost stdout is written at the process's end.
    if (!(error instanceof Interrupted || error instanceof OutputLost)) cli.say(`${cli.name}: ${described.message}`);
    return described.exitCode;
  }
}

/** Refuses --server for a command that has nothing to do with one. */
function refuseServer(program: Command, called: Command): void {
  const { server } = program.opts<{ server?: string }>();
  const top = called.parent === program || !called.parent ? called : called.parent;
  if (server === undefined || !['local', 'completion'].includes(top.name())) return;
  throw refused(`${top.name()} is for this machine alone and uses no server; leave --server out`);
}

/**
 * Defines every command and flag. A command's module is imported when the command is called, so that `--help` is fast.
 * `done` gets the exit code of the command that ran. `line`: the command line that will be parsed.
 */
export function define(cli: Cli, done: (exitCode: number) => void, line: readonly string[] = []): Command {
  const program = new Command(cli.name)
    .description('Runs agent sessions on Kubernetes.')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .helpCommand(false)
    .version(VERSION, '--version', 'print the version')
    .option(
      '-n, --namespace <namespace>',
      'the namespace; default: the kubeconfig’s; with --server: the pod’s of the token, or default',
      name,
    )
    .option(
      '--kubeconfig <file>',
      'the kubeconfig; default: $KUBECONFIG, the running embedded cluster’s, ~/.kube/config',
    )
    .option('--context <name>', 'the context of the kubeconfig')
    .option('--server <url>', 'use Berth’s HTTP API at this URL instead of a kubeconfig; default: $BERTH_SERVER')
    .option(
      '--token-file <file>',
      'with --server: a file with the token, read for each request; default: $BERTH_TOKEN_FILE',
    )
    .option(
      '--certificate-authority <file>',
      'with --server: a file with the certificates that the server’s is checked with',
    )
    .option('--allow-plain-text', 'with --server: send the token over http:// to another machine');
  program.hook('preAction', (_, called) => refuseServer(program, called));

  program.addHelpText(
    'after',
    `\nExample:\n  ${cli.name} local up --detach\n  ${cli.name} run --input '{"n": 3}' --result json -- python3 agent.py`,
  );
  program.showHelpAfterError(`See: ${cli.name} --help`);

  const command = commandAdder(program, line, cli, done);
  program.commandsGroup('Sessions:');
  defineSessions(command, cli);
  program.commandsGroup('Turns:');
  defineTurns(command, cli);
  program.commandsGroup('Look and wait:');
  defineViews(command, cli);
  defineArtifacts(program, cli, done);
  program.commandsGroup('Inside a session:');
  defineExec(command, cli);
  defineFiles(program, command, cli, done);
  definePorts(command, cli);
  program.commandsGroup('More:');
  defineEnv(program, cli, done);
  defineLocal(program, cli, done);
  defineTools(program, command, cli);
  defineComplete(program, cli, done);
  return program;
}
