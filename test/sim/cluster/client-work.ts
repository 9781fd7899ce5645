import { Readable, Writable } from 'node:stream';
import type { CommandStart } from '../../../core/enter/hello.ts';
import { Commands } from '../../../runner/commands/commands.ts';
import { Transfers } from '../../../runner/enter/files.ts';
import { problemOf } from '../../../runner/enter/hello.ts';
import type { Visit } from '../../../runner/enter/visit.ts';
import type { Meter } from '../../../runner/limits/meter.ts';
import { ALL_STOPPED, type Contained } from '../../../runner/process/contained.ts';
import type { Exit } from '../../../runner/process/exit.ts';
import type { BoundSession } from '../../../runner/session/session.ts';
import type { Dice } from '../random.ts';
import type { Process } from '../scheduler.ts';

/** Returns the words of a command that runs for `runsMs`, and for `endsMs` after SIGTERM; time in which it is held does not count. */
export const commandWords = (runsMs: number, endsMs: number): string[] => ['work', `${runsMs}`, `${endsMs}`];

interface ClientWorkOptions {
  process: Process;
  meter: Meter;
  dice: Dice;
  /** Called when work begins or ends that keeps the session from being idle, and at input of a terminal, which does at that moment. */
  onActivity(): void;
}

/** What clients do inside a pod: the runner's commands and transfers, with processes that take time and write nothing. */
export class ClientWork {
  readonly commands: Commands;
  readonly transfers: Transfers;
  /** Number of commands without a terminal that run, and of open transfers. */
  open = 0;
  readonly #options: ClientWorkOptions;

  constructor(options: ClientWorkOptions) {
    const { process, meter, dice } = options;
    this.#options = options;
    const start = meter.wrap(async ({ args, tty }) => this.#start(args.map(Number), tty !== undefined), 'command');
    const launch = ({ command, tty }: CommandStart) =>
      start({ file: 'work', argv0: 'work', args: command.slice(1), cwd: '/', env: {}, ...(tty && { tty }) });
    this.commands = new Commands({ launch, directory: '/nowhere', clock: process, random: dice });
    // People of the simulator only read files.
    this.transfers = new Transfers(async () => '/work', { serve: () => {} }, process);
  }

  /** Serves a client whose connection has reached the runner, as far as the session is open to it. */
  serve(visit: Visit, session: BoundSession): void {
    const problem = problemOf(visit.hello, session.bind, session.access);
    if (problem) visit.refuse(problem);
    else if (!('root' in visit.hello)) this.commands.serve(visit);
    else {
      this.#change(1);
      visit.gone.addEventListener('abort', () => this.#change(-1));
      this.transfers.serve(visit);
    }
  }

  /** Notes that a client gives input to a terminal. */
  typed(): void {
    this.#change(0);
  }

  #start([runsMs = 0, endsMs = 0]: number[], isTerminal: boolean): Contained {
    const { process } = this.#options;
    const weight = isTerminal ? 0 : 1;
    this.#change(weight);
    return timedFamily(process, { runsMs, endsMs, onEnd: () => this.#change(-weight) });
  }

  #change(by: number): void {
    this.open += by;
    this.#options.onActivity();
  }
}

interface FamilyOptions {
  runsMs: number;
  endsMs: number;
  onEnd(): void;
}

/** Returns a family of one process, which writes nothing and ends after a time; time in which it is held does not count. */
function timedFamily(process: Process, { runsMs, endsMs, onEnd }: FamilyOptions): Contained {
  const exited = Promise.withResolvers<Exit>();
  const gone = Promise.withResolvers<void>();
  const [stdout, stderr] = [new Readable({ read() {} }), new Readable({ read() {} })];
  let leftMs = runsMs;
  let end: Exit = { code: 0, signal: null };
  let since: number | undefined;
  let cancel = () => {};
  let isOver = false;
  const finish = (exit: Exit) => {
    if (isOver) return;
    isOver = true;
    cancel();
    onEnd();
    for (const stream of [stdout, stderr]) stream.push(null);
    exited.resolve(exit);
    gone.resolve();
  };
  const pause = () => {
    cancel();
    if (since !== undefined) leftMs = Math.max(0, leftMs - (process.monotonic() - since));
    since = undefined;
  };
  const go = () => {
    if (isOver || since !== undefined) return;
    since = process.monotonic();
    cancel = process.after(leftMs, 'a command ends', () => finish(end));
  };
  go();
  return {
    pid: 1,
    stdin: new Writable({ write: (_bytes, _encoding, done) => done() }),
    stdout,
    stderr,
    exited: exited.promise,
    gone: gone.promise,
    written: undefined,
    killing: false,
    usage: undefined,
    overrun: undefined,
    onUsage: () => {},
    resize: () => {},
    signal: () => {},
    terminate: () => {
      const isHeld = since === undefined;
      pause();
      leftMs = Math.min(leftMs, endsMs);
      end = { code: null, signal: 'SIGTERM' };
      if (!isHeld) go();
    },
    kill: () => finish({ code: null, signal: 'SIGKILL' }),
    hold: async () => {
      pause();
      return ALL_STOPPED;
    },
    release: go,
    survivors: async () => [],
  };
}
