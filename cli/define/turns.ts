import { Option } from 'commander';
import type { Cli } from '../cli.ts';
import type { ApproveFlags } from '../commands/approve.ts';
import type { AttachFlags } from '../commands/attach.ts';
import type { CancelFlags } from '../commands/cancel.ts';
import type { TurnFlags } from '../commands/turn.ts';
import { duration, name, session, sessionOrTurn } from '../input/flags.ts';
import type { AddCommand } from './command.ts';
import {
  attemptsOption,
  formatOption,
  inputFileOption,
  inputOption,
  quietOption,
  textFileOption,
  textOption,
  yesOption,
} from './options.ts';

/** Defines the commands on turns. */
export function defineTurns(command: AddCommand, cli: Cli): void {
  command(
    'turn SESSION [TEXT]',
    'Gives a session a turn, waits for it and prints the output.',
    ['turn notes hello', `turn build 'make test'`, `turn notes --input '{"n": 3}'`, 'turn notes < question.json'],
    async ([sessionName, word]: [string, string | undefined], flags: TurnFlags) =>
      (await import('../commands/turn.ts')).turn(sessionName, word === undefined ? flags : { ...flags, word }, cli),
  )
    .argument('<session>', 'the session’s name', session)
    .argument('[text]', 'the input as a string, like --text; where the driver is Shell, a command for the shell')
    .showHelpAfterError(
      `Put a text of several words in quotes, or give the input with --input or through a pipe. See: ${cli.name} turn --help`,
    )
    .addOption(textOption())
    .addOption(textFileOption())
    .addOption(inputOption())
    .addOption(inputFileOption())
    .option('--name <name>', 'name of the turn; default: the session’s name and a suffix that sorts by time', name)
    .option('--timeout <duration>', 'maximum duration of the turn, for example 90s', duration)
    .addOption(attemptsOption())
    .addOption(quietOption())
    .option('--no-wait', 'print the turn’s name and do not wait for its end')
    .addOption(new Option('--detach', 'the same as --no-wait').implies({ wait: false }).hideHelp())
    .addOption(formatOption('json', 'yaml', 'name'));

  command(
    'attach [SESSION|TURN]',
    'Waits for a turn that was given before, and prints its output as turn does. Default: the only turn that has not ended.',
    ['attach', 'attach notes', 'attach notes-9dnwgnrqgfxtt'],
    async ([named]: [string | undefined], flags: AttachFlags) =>
      (await import('../commands/attach.ts')).attach(named, flags, cli),
  )
    .argument('[session|turn]', 'the turn, or the session of the turn', sessionOrTurn)
    .addOption(quietOption())
    .addOption(formatOption('json', 'yaml', 'name'));

  command(
    'cancel SESSION',
    'Cancels the session’s running and queued turns.',
    ['cancel notes', 'cancel notes --turn notes-9dnwgnrqgfxtt'],
    async ([sessionName]: [string], flags: CancelFlags) =>
      (await import('../commands/cancel.ts')).cancel(sessionName, flags, cli),
  )
    .argument('<session>', 'the session’s name', session)
    .option('--turn <name>', 'cancel only this turn')
    .option('--no-wait', 'do not wait for the end of the turns')
    .addOption(formatOption('name'));

  command(
    'approve SESSION|TURN',
    'Decides on the request of a turn; the first decision counts.',
    [
      'approve notes',
      `approve notes --deny --note 'not on a Friday'`,
      `approve notes-9dnwgnrqgfxtt --response '{"budget": 5}'`,
    ],
    async ([what]: [string], flags: ApproveFlags) => (await import('../commands/approve.ts')).approve(what, flags, cli),
  )
    .argument('<session|turn>', 'the session of the waiting turn, or the turn', sessionOrTurn)
    .option('--deny', 'deny the request')
    .option('--response <json>', 'further data for the agent, as JSON')
    .option('--note <text>', 'reason for the decision, in words')
    .option('--request <id>', 'decide only if the turn waits for the request with this id')
    .addOption(yesOption())
    .addOption(formatOption('name'));
}
