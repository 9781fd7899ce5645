import { isIP } from 'node:net';
import { InvalidArgumentError } from 'commander';
import type { Cli } from '../cli.ts';
import type { PortForwardFlags } from '../commands/port-forward.ts';
import type { Forward } from '../enter/forward.ts';
import { port, session } from '../input/flags.ts';
import type { AddCommand } from './command.ts';

/** Defines the command that reaches servers inside sessions. */
export function definePorts(command: AddCommand, cli: Cli): void {
  command(
    'port-forward SESSION [LOCAL:]REMOTE…',
    'Forwards ports of this machine to ports of a running session, until Ctrl-C.',
    ['port-forward notes 3000', 'port-forward notes 8080:3000 :5432', 'port-forward notes 3000 --address 0.0.0.0'],
    async ([name, pairs]: [string, Forward[]], flags: PortForwardFlags) =>
      (await import('../commands/port-forward.ts')).portForward(name, pairs, flags, cli),
  )
    .argument('<session>', 'the session’s name', session)
    .argument('<[local:]remote...>', 'port of this machine and port of the session; :REMOTE takes any free port', pairs)
    .option(
      '--address <addresses>',
      'addresses of this machine to listen on, with commas; default: localhost, which is 127.0.0.1 and ::1',
      addresses,
    );
}

/** Collects pairs of ports. */
function pairs(text: string, before: Forward[] = []): Forward[] {
  const [first = '', second, ...more] = text.split(':');
  const remote = second === undefined ? first : second;
  if (more.length > 0 || remote === '' || port(remote) === 0) {
    throw new InvalidArgumentError(`"${text}" is no pair of ports; write LOCAL:REMOTE, for example 8080:3000.`);
  }
  return [...before, { local: second === undefined ? port(first) : port(first || '0'), remote: port(remote) }];
}

function addresses(text: string): string[] {
  return text.split(',').map((address) => {
    if (address !== 'localhost' && isIP(address) === 0) {
      throw new InvalidArgumentError(`"${address}" is neither an IP address nor localhost.`);
    }
    return address;
  });
}
