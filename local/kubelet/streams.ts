/** Attach and exec: connects a client's channels with a container's process, or with a new one beside it. */

import { Readable, type Writable } from 'node:stream';
import {
  ChannelStream,
  exitStatus,
  internalError,
  type StdinTarget,
  type StreamStatus,
  type Upgrade,
} from './channels.ts';
import { exitOf, type Launch, launch, type RunningContainer } from './container.ts';
import { Output } from './output.ts';
import type { PipeFactory } from './pipes.ts';
import { launchOnTerminal } from './terminal.ts';

/** Accepts the upgrade and at once reports why there is nothing to connect to. */
export function refuse(upgrade: Upgrade, query: URLSearchParams, status: StreamStatus): void {
  ChannelStream.accept(upgrade, query, (stream) => stream.finish(status));
}

function stdinTarget(stdin: Writable, close: () => void): StdinTarget {
  return {
    write: (data) => (stdin.writable ? stdin.write(data) : true),
    onDrain(listener) {
      stdin.on('drain', listener);
      return () => stdin.off('drain', listener);
    },
    close,
  };
}

const NOWHERE: StdinTarget = { write: () => true, onDrain: () => () => {}, close() {} };

/** Joins a running container. `stdinOnce`: its stdin ends with this client's. */
export function attach(
  upgrade: Upgrade,
  query: URLSearchParams,
  container: RunningContainer,
  stdinOnce: boolean,
): void {
  ChannelStream.accept(upgrade, query, (stream) => {
    const { stdin } = container;
    const endStdin = () => {
      if (stdinOnce) stdin?.end();
    };
    if (stream.stdin) {
      // A container without stdin takes no input; received input is dropped.
      stream.readStdin(stdin ? stdinTarget(stdin, endStdin) : NOWHERE);
      stream.closed.then(endStdin);
    }
    container.output.add(stream);
    stream.closed.then(() => container.output.remove(stream));
  });
}

/**
 * Runs a command beside the container's process, in the same directory and with the same environment. A client that goes
 * takes the command's streams along and not the command, as on a real cluster, or its terminal, which ends it.
 */
export function exec(
  upgrade: Upgrade,
  query: URLSearchParams,
  container: RunningContainer,
  deps: { pipes: PipeFactory; keeper: string | undefined },
): void {
  ChannelStream.accept(upgrade, query, (stream) => {
    const how = { ...container.launch, argv: onThisMachine(query.getAll('command'), container) };
    const { pipes, keeper } = deps;
    const run =
      stream.tty && keeper ? runOnTerminal(stream, how, container, keeper) : runCommand(stream, how, container, pipes);
    run.then(
      (exitCode) => stream.finish(exitStatus(exitCode)),
      (error: Error) => stream.finish(internalError(`error executing command in container: ${error.message}`)),
    );
  });
}

/** Returns the command with the file that stands for the image's program here. */
function onThisMachine([program = '', ...args]: string[], { launch: { programs = {} } }: RunningContainer): string[] {
  return [Object.hasOwn(programs, program) ? programs[program]! : program, ...args];
}

async function runCommand(
  stream: ChannelStream,
  how: Launch,
  container: RunningContainer,
  pipes: PipeFactory,
): Promise<number> {
  const streams = await pipes.open(stream.stdin);
  try {
    const output = new Output(streams.stdout, streams.stderr);
    output.add(stream);
    const { child } = await launch(how, streams);
    const exited = exitOf(child);
    await endIfLate(container);
    const { stdin } = streams;
    if (stdin) stream.readStdin(stdinTarget(stdin, () => stdin.end()));
    stream.closed.then(() => streams.destroy());
    const exitCode = await exited;
    await Promise.race([output.ended, stream.closed]);
    return exitCode;
  } finally {
    streams.destroy();
  }
}

async function runOnTerminal(
  stream: ChannelStream,
  how: Launch,
  container: RunningContainer,
  keeper: string,
): Promise<number> {
  const terminal = await launchOnTerminal(keeper, how);
  const output = new Output(terminal.output, Readable.from([]));
  output.add(stream);
  stream.closed.then(() => {
    output.remove(stream);
    terminal.hangUp();
  });
  await endIfLate(container);
  stream.readSizes((size) => terminal.resize(size));
  const { input } = terminal;
  if (stream.stdin) stream.readStdin(stdinTarget(input, () => input.end()));
  const exitCode = await terminal.exited;
  await Promise.race([output.ended, stream.closed]);
  return exitCode;
}

/** Kills the processes of a container that ended meanwhile and may have missed the newest. */
async function endIfLate(container: RunningContainer): Promise<void> {
  if (!container.running) await container.kill();
}
