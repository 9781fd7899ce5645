import type { FrameStream } from '../../core/enter/client.ts';
import type { Rest, Transfer } from '../../core/enter/files.ts';
import type { CommandListed, CommandWish, FileEnd, FileEntry, Root, WriteFacts } from '../../core/enter/hello.ts';
import type { FolderEntry } from '../../core/enter/uploads.ts';

/** A file or a folder of a session: a path below one of its roots. */
export interface Place {
  root: Root;
  path: string;
}

/**
 * The inside of a session's present pod: commands and files. Each call opens connections of its own, and tries once. There is one
 * implementation over `pods/exec` and one over Berth's HTTP API. Both reject with an EnterError where the session refuses, and with a
 * TransportError or an ApiError where the way to it fails.
 */
export interface Inside {
  /** Starts a command, or attaches to it; resolves once it is known to run. The frames are those of `want: 'command'`. */
  command(wish: CommandWish, signal: AbortSignal): Promise<FrameStream>;
  /** Commands that run or have just ended. */
  commands(): Promise<CommandListed[]>;
  /** Sends a command a signal; SIGKILL follows after `graceMs` to all that is left of it. */
  signalCommand(id: string, signal: NodeJS.Signals, graceMs: number): Promise<void>;
  /** Describes what is at a place. */
  stat(place: Place): Promise<FileEntry>;
  /** What is in a folder, in no order. */
  list(place: Place): Promise<FileEntry[]>;
  /** A file, or the rest of it. Rejects with a FileReplacedError where the file is not the one that the rest is of. */
  read(place: Place, rest?: Rest): Promise<Transfer>;
  /** A folder with all below it, as a tar. */
  archive(place: Place): Promise<Transfer>;
  /** Writes a file, which appears as a whole or not at all. */
  write(place: Place, facts: WriteFacts & { length: number }, content: AsyncIterable<Buffer>): Promise<FileEnd>;
  /** Puts entries into a folder, each file as a whole. `length`: bytes of all files. Folders come before what is in them. */
  fill(place: Place, length: number, entries: AsyncIterable<FolderEntry>): Promise<FileEnd>;
  /** Deletes a file or a link; a folder only with `recursive`. */
  remove(place: Place, recursive: boolean): Promise<FileEnd>;
}
