import { type Command, Option } from 'commander';
import type { Cli } from '../cli.ts';
import { port } from '../input/flags.ts';

/** Defines `local`, which passes its flags on to the embedded cluster, a program of its own. */
export function defineLocal(program: Command, cli: Cli, done: (exitCode: number) => void): void {
  const local = program
    .command('local')
    .usage('up|down|status|kubeconfig')
    .helpCommand(false)
    .showHelpAfterError(`See: ${cli.name} local --help`)
    .description('The embedded cluster: Kubernetes’ API, Berth and its pods as processes of this machine.')
    .addHelpText(
      'after',
      `\nExample:\n  ${cli.name} local up --detach\n  kubectl --kubeconfig "$(${cli.name} local kubeconfig)" get sessions,turns`,
    );
  const add = (
    word: string,
    description: string,
    example: string,
    run: (flags: Record<string, unknown>) => Promise<number>,
  ) =>
    local
      .command(word)
      .description(description)
      .addHelpText('after', `\nExample:\n  ${example}`)
      .showHelpAfterError(`See: ${cli.name} local ${word} --help`)
      .action(async (flags) => done(await run(flags)));
  const start = async (args: string[]) => (await import('../commands/local.ts')).local(args, cli);

  add(
    'up',
    'Starts the embedded cluster; stays in the foreground unless --detach.',
    `${cli.name} local up --detach`,
    (flags) =>
      start([
        'up',
        ...(flags.detach ? ['--detach'] : []),
        ...(flags.port ? ['--port', String(flags.port)] : []),
        ...(flags.apiPort ? ['--api-port', String(flags.apiPort)] : []),
      ]),
  )
    .option('--detach', 'return when the cluster is ready, and print the path of its kubeconfig')
    .option(
      '--port <port>',
      'port of the Kubernetes API on 127.0.0.1; default: the last one of this folder if free, else any',
      port,
    )
    .option(
      '--api-port <port>',
      'port of the HTTP API on 127.0.0.1; default: the last one of this folder if free, else any',
      port,
    );
  add(
    'down',
    'Stops the embedded cluster with all its pods; sessions and their state are kept.',
    `${cli.name} local down`,
    () => start(['down']),
  );
  add(
    'status',
    'Prints the addresses of the embedded cluster, its kubeconfig and the file with a token for the HTTP API; exit code 1 when none runs.',
    `${cli.name} local status`,
    (flags) => start(['status', ...(flags.output ? ['-o', String(flags.output)] : [])]),
  ).addOption(new Option('-o, --output <format>', 'output format').choices(['json']));
  add(
    'kubeconfig',
    'Prints the path of the cluster’s kubeconfig.',
    `kubectl --kubeconfig "$(${cli.name} local kubeconfig)" get sessions`,
    async () => (await import('../commands/local.ts')).localKubeconfig(cli),
  );
}
