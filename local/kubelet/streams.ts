/** Attach and exec: connects a client's channels with a container's process, or with a new one beside it. */

import {
  ChannelStream,
  exitStatus,
  internalError,
  type StdinTarget,
  type StreamStatus,
  type Upgrade,
} from './channels.ts';
import { exitOf, launch, type RunningContainer } from './container.ts';
import { Output } from './output.ts';
import type { PipeFactory, StandardStreams } from './pipes.ts';
import type { ProcessTable } from './process-table.ts';
import { identify, killBelonging } from './processes.ts';

/** Accepts the upgrade and at once reports why there is nothing to connect to. */
export function refuse(upgrade: Upgrade, query: URLSearchParams, status: StreamStatus): void {
  ChannelStream.accept(upgrade, query, (stream) => stream.finish(status));
}

function stdinTarget(stdin: NonNullable<StandardStreams['stdin']>, close: () => void): StdinTarget {
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

/** Runs a command beside the container's process, in the same directory and with the same environment. */
export function exec(
  upgrade: Upgrade,
  query: URLSearchParams,
  container: RunningContainer,
  deps: { pipes: PipeFactory; table: ProcessTable },
): void {
  ChannelStream.accept(upgrade, query, (stream) => {
    runCommand(stream, query.getAll('command'), container, deps).then(
      (exitCode) => stream.finish(exitStatus(exitCode)),
      (error: Error) => stream.finish(internalError(`error executing command in container: ${error.message}`)),
    );
  });
}

async function runCommand(
  stream: ChannelStream,
  argv: string[],
  container: RunningContainer,
  { pipes, table }: { pipes: PipeFactory; table: ProcessTable },
): Promise<number> {
  const streams = await pipes.open(stream.stdin);
  try {
    const output = new Output(streams.stdout, streams.stderr);
    output.add(stream);
    stream.closed.then(() => output.remove(stream));
    const { child, pid } = await launch({ ...container.launch, argv }, streams);
    const leader = identify(table, pid);
    let ended = false;
    const exited = exitOf(child).finally(() => {
      ended = true;
    });
    // The container ended meanwhile and may have missed this process.
    if (!container.running) await container.kill();
    const { stdin } = streams;
    if (stdin) stream.readStdin(stdinTarget(stdin, () => stdin.end()));
    // A command whose client has gone is ended; background processes of a command that ended by itself stay.
    stream.closed.then(() => {
      if (leader && !ended) return killBelonging(table, { leaders: [leader], marked: () => false });
    });
    const exitCode = await exited;
    await Promise.race([output.ended, stream.closed]);
    return exitCode;
  } finally {
    streams.destroy();
  }
}
