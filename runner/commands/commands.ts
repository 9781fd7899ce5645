import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { idProblem, invalid, signalProblem, startProblem } from '../../core/enter/command-start.ts';
import { jsonPayload, MAX_PAYLOAD } from '../../core/enter/frames.ts';
import type { CommandListed, CommandStart, EnterCode, EnterRefusal, Wish } from '../../core/enter/hello.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { Clock, Random } from '../../core/runtime.ts';
import type { Visit } from '../enter/visit.ts';
import type { Contained } from '../process/contained.ts';
import { errorCode } from '../system/errors.ts';
import { Attachment } from './attachment.ts';
import { Command, NO_READER_MS } from './command.ts';
import { CommandLog } from './log.ts';
import { Readers } from './readers.ts';
import { Room } from './room.ts';

/** Limit of the logs of a session's commands together, bytes. */
export const LOG_ROOM_BYTES = 128 * 1024 * 1024;
/** Limit of running commands: their windows together are the logs' room. */
export const MAX_RUNNING = 16;
/** Limit of commands that have ended and whose exit no client has acknowledged. */
export const MAX_ENDED = 16;
/** Time after which such a command is dropped, milliseconds. */
export const KEPT_MS = 600_000;
/** Number of dropped commands whose ids are remembered, so that a start that comes late starts nothing again. */
const MAX_PAST = 4096;
/** Limit of a command's words in a list, characters. */
const MAX_WORDS = 1024;

export interface CommandsOptions {
  /** Starts a process. Rejects with a TurnFailure when the program cannot be executed. */
  launch: (start: CommandStart) => Promise<Contained>;
  /** Directory of the logs. */
  directory: string;
  clock: Clock;
  random: Random;
}

/** Commands of a session: started once by id, read and fed by clients that come and go. */
export class Commands {
  readonly #options: CommandsOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #past = new Set<string>();
  readonly #room = new Room(LOG_ROOM_BYTES);
  #isSuspended = false;
  #isStopping = false;
  #lastActivity: number | undefined;

  constructor(options: CommandsOptions) {
    this.#options = options;
  }

  /** Serves a client that wants a command, the list of commands, or to signal one. */
  serve(visit: Visit): void {
    const wish = visit.hello;
    if (wish.want === 'commands') this.#list(visit);
    else if (wish.want === 'signal') this.#signal(visit, wish);
    else if (wish.want === 'command') {
      this.#attach(visit, wish).catch((error) => {
        visit.refuse(refusal('CommandFailed', `the output of command ${wish.id} cannot be read: ${errorCode(error)}`));
      });
    }
  }

  /** Sets whether the session is suspended: commands stand then, and none is started. The caller has their processes stand. */
  suspend(suspended: boolean): void {
    if (suspended === this.#isSuspended) return;
    this.#isSuspended = suspended;
    for (const { command, readers } of this.#entries.values()) command?.stand(suspended, readers.isAttached);
  }

  /** Ends all commands. Resolves when no process is left. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    await Promise.all(
      [...this.#entries.values()].map(async (entry) => {
        const command = await entry.begun.catch(() => undefined);
        await command?.end('PodEnd', graceMs);
      }),
    );
  }

  /** Milliseconds since a command kept the session from being idle, 0 while one does; undefined where none ever did. */
  get idleMs(): number | undefined {
    const commands = [...this.#entries.values()].flatMap(({ command }) => command ?? []);
    if (commands.some(({ isBusy }) => isBusy)) return 0;
    const last = Math.max(this.#lastActivity ?? Number.NEGATIVE_INFINITY, ...commands.map((each) => each.lastActivity));
    return Number.isFinite(last) ? Math.round(this.#options.clock.monotonic() - last) : undefined;
  }

  async #attach(visit: Visit, wish: Extract<Wish, { want: 'command' }>): Promise<void> {
    const { id, start, from = 0, input = false } = wish;
    const problem = idProblem(id) ?? (start && startProblem(start)) ?? fromProblem(from);
    if (problem) return visit.refuse(problem);
    const entry = this.#entryOf(id, start);
    if ('code' in entry) return visit.refuse(entry);
    let command: Command;
    try {
      command = await entry.begun;
    } catch (error) {
      const message = error instanceof TurnFailure ? error.message : `the command was not started: ${errorCode(error)}`;
      return visit.refuse({ code: 'CommandFailed', message });
    }
    if (visit.gone.aborted) return;
    if (from > command.log.next)
      return visit.refuse(invalid('from', `is ${from}; there are ${command.log.next} bytes`));
    await this.#read(visit, entry, command, from, input);
  }

  async #read(visit: Visit, entry: Entry, command: Command, from: number, input: boolean): Promise<void> {
    const acknowledge = () => command.log.acknowledge(entry.readers.acknowledged ?? 0);
    const attachment = new Attachment(visit, command, {
      from,
      hasInput: () => entry.input === attachment,
      onAcknowledged: acknowledge,
      onExitKnown: () => {
        entry.isKnown = true;
        visit.close();
      },
    });
    const reader = entry.readers.add(attachment, from);
    // It may take the place of one that had acknowledged less, and have no output left to acknowledge: the command would wait for ever.
    acknowledge();
    if (input) entry.input = attachment;
    if (!this.#isSuspended) command.attached(true);
    visit.gone.addEventListener('abort', () => {
      entry.readers.left(reader);
      acknowledge();
      if (!this.#isSuspended) command.attached(entry.readers.isAttached);
      if (entry.isKnown) this.#dropKnown(entry);
      this.#dropOldest();
      this.#options.clock.setTimer(NO_READER_MS, () => {
        entry.readers.forget(reader);
        acknowledge();
      });
    });
    await attachment.run();
  }

  /** Returns the entry of a command, which it starts if it is new, or the refusal. */
  #entryOf(id: string, start: CommandStart | undefined): Entry | EnterRefusal {
    const present = this.#entries.get(id);
    if (present) {
      if (!start || isDeepStrictEqual(start, present.start)) return present;
      return refusal('Conflict', `command ${id} was started with other words; choose another id`);
    }
    if (this.#past.has(digestOf(id))) {
      return refusal('CommandLost', `command ${id} has ended, and its output is kept no more`);
    }
    if (!start) return refusal('CommandNotFound', `the session's pod has no command ${id}`);
    if (this.#isStopping) return refusal('Stopping', 'the pod is about to end');
    if (this.#isSuspended) return refusal('Suspended', 'the session is being suspended');
    const running = [...this.#entries.values()].filter(({ command }) => !command?.exit);
    if (running.length >= MAX_RUNNING) {
      return refusal('TooManyCommands', `${running.length} commands run; at most ${MAX_RUNNING} may; end one first`);
    }
    const entry: Entry = { id, start, begun: this.#begin(id, start), readers: new Readers(), isKnown: false };
    this.#entries.set(id, entry);
    entry.begun.then(
      (command) => this.#begun(entry, command),
      () => this.#entries.delete(id),
    );
    return entry;
  }

  async #begin(id: string, start: CommandStart): Promise<Command> {
    const { launch, directory, clock, random } = this.#options;
    const family = await launch(start);
    const log = new CommandLog({ directory, room: this.#room, drops: start.detach === true, random });
    return new Command(family, { id, start, log, clock });
  }

  #begun(entry: Entry, command: Command): void {
    entry.command = command;
    if (this.#isSuspended) command.stand(true, false);
    else command.attached(entry.readers.isAttached);
    void command.over.then(() => {
      this.#lastActivity = this.#options.clock.monotonic();
      this.#keepFor(entry, KEPT_MS);
      this.#dropOldest();
    });
  }

  /** Drops a command after a time, or after as long again while somebody reads it. */
  #keepFor(entry: Entry, ms: number): void {
    entry.cancelDrop = this.#options.clock.setTimer(ms, () => {
      if (entry.readers.isAttached) this.#keepFor(entry, ms);
      else this.#drop(entry);
    });
  }

  /** Drops the commands that ended first, if too many have ended that nobody reads. */
  #dropOldest(): void {
    const ended = [...this.#entries.values()].filter(({ command, readers }) => command?.exit && !readers.isAttached);
    ended.sort((a, b) => (a.command?.ended ?? '').localeCompare(b.command?.ended ?? ''));
    for (const old of ended.slice(0, Math.max(0, ended.length - MAX_ENDED))) this.#drop(old);
  }

  /** Drops a command whose exit a client has, once nobody else reads it. */
  #dropKnown(entry: Entry): void {
    if (!entry.readers.isAttached) this.#drop(entry);
  }

  #drop(entry: Entry): void {
    if (!this.#entries.delete(entry.id)) return;
    entry.cancelDrop?.();
    this.#past.add(digestOf(entry.id));
    const [oldest] = this.#past;
    if (this.#past.size > MAX_PAST && oldest !== undefined) this.#past.delete(oldest);
    void entry.command?.log.close();
  }

  #signal(visit: Visit, { id, signal, graceMs }: Extract<Wish, { want: 'signal' }>): void {
    const entry = this.#entries.get(id);
    const problem = idProblem(id) ?? signalProblem(signal);
    if (problem || !entry) {
      visit.refuse(problem ?? refusal('CommandNotFound', `the session's pod has no command ${id}`));
      return;
    }
    entry.begun.then(
      (command) => {
        command.signal(signal as NodeJS.Signals);
        if (graceMs !== undefined) void command.end('Signal', graceMs);
        visit.send('ready', jsonPayload({}));
        visit.close();
      },
      () => visit.refuse(refusal('CommandNotFound', `command ${id} was not started`)),
    );
  }

  #list(visit: Visit): void {
    const rows = [...this.#entries.values()].flatMap(({ command }) => (command ? listed(command) : []));
    visit.send('ready', jsonPayload({}));
    const bytes = jsonPayload(rows);
    for (let at = 0; at < bytes.length; at += MAX_PAYLOAD) visit.send('data', bytes.subarray(at, at + MAX_PAYLOAD));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    visit.send('end', jsonPayload({ bytes: bytes.length, sha256 }));
    visit.close();
  }
}

interface Entry {
  id: string;
  start: CommandStart;
  /** Settles when the process runs, or could not be started. */
  begun: Promise<Command>;
  command?: Command;
  readers: Readers;
  /** Newest client that wanted to give input. */
  input?: Attachment;
  /** True once a client has the exit. */
  isKnown: boolean;
  cancelDrop?: () => void;
}

function listed({ id, start, started, ended, exit }: Command): CommandListed {
  return {
    id,
    command: clipped(start.command),
    started,
    ...(ended !== undefined && { ended }),
    ...(exit && { exit }),
    detach: start.detach === true,
    tty: start.tty !== undefined,
  };
}

/** Cuts the words of a command, which can be long texts. */
function clipped(words: readonly string[]): string[] {
  const kept: string[] = [];
  let room = MAX_WORDS;
  for (const word of words) {
    if (room <= 0) return [...kept, '…'];
    kept.push(word.length > room ? `${word.slice(0, room)}…` : word);
    room -= word.length + 1;
  }
  return kept;
}

function fromProblem(from: unknown): EnterRefusal | undefined {
  return Number.isSafeInteger(from) && (from as number) >= 0
    ? undefined
    : invalid('from', 'must be a position in bytes');
}

function refusal(code: EnterCode, message: string): EnterRefusal {
  return { code, message };
}

function digestOf(id: string): string {
  return createHash('sha256').update(id).digest('base64');
}
