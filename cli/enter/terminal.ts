/** The caller's terminal, while a command in a session has it. */
import type { ReadStream, WriteStream } from 'node:tty';

const ENTER = new Set([0x0a, 0x0d]);
const TILDE = 0x7e;
const DOT = 0x2e;

/**
 * Modes that a program sets and that are left on when its connection is lost: the other screen (1049), reports of the mouse and of the
 * focus, bracketed paste (2004), keys of applications, a hidden cursor, colours.
 */
const USUAL_MODES =
  '\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\x1b[?25h\x1b[0m';

export interface RawTerminalOptions {
  stdin: ReadStream;
  stdout: WriteStream;
  /** Called when the size has changed, and after a stop of this process. */
  onSize: () => void;
  /** Called when the user types the keys that leave the command: Enter, `~`, `.`. */
  onLeave: () => void;
}

/**
 * Takes the terminal: every byte that is typed comes as it is, and Ctrl-C is a byte like any other. `close` gives it back. So
 * does a stop of this process (SIGTSTP) until it continues, and, by Node itself, the end of it.
 */
export class RawTerminal implements AsyncIterable<Buffer> {
  readonly #options: RawTerminalOptions;
  readonly #keys = new LeaveKey();
  #isClosed = false;

  constructor(options: RawTerminalOptions) {
    this.#options = options;
    options.stdin.setRawMode(true);
    options.stdout.on('resize', this.#tellSize);
    process.on('SIGTSTP', this.#stop);
    process.on('SIGCONT', this.#continue);
    process.on('SIGQUIT', this.#quit);
  }

  /** Yields what is typed until the terminal is gone or closed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of this.#options.stdin) {
        const { bytes, leaves } = this.#keys.take(chunk as Buffer);
        if (bytes.length > 0) yield bytes;
        if (leaves) this.#options.onLeave();
      }
    } catch (error) {
      // A terminal that is gone fails with EIO, as it ends for a program that reads lines.
      if (!this.#isClosed && (error as NodeJS.ErrnoException).code !== 'EIO') throw error;
    }
  }

  /** Gives the terminal back. `isCut`: the command had no chance to set its modes back. */
  close(isCut: boolean): void {
    if (this.#isClosed) return;
    if (isCut) this.#options.stdout.write(USUAL_MODES);
    this.#giveBack();
    this.#isClosed = true;
    this.#options.stdout.off('resize', this.#tellSize);
    process.off('SIGTSTP', this.#stop);
    process.off('SIGCONT', this.#continue);
    process.off('SIGQUIT', this.#quit);
    this.#options.stdin.destroy();
  }

  #tellSize = () => this.#options.onSize();

  #giveBack = () => {
    try {
      this.#options.stdin.setRawMode(false);
    } catch {
      // The terminal is gone.
    }
  };

  #stop = () => {
    this.#giveBack();
    process.kill(process.pid, 'SIGSTOP');
  };

  #continue = () => {
    this.#options.stdin.setRawMode(true);
    this.#tellSize();
  };

  #quit = () => {
    this.#giveBack();
    process.off('SIGQUIT', this.#quit);
    process.kill(process.pid, 'SIGQUIT');
  };
}

/**
 * Finds the keys that leave a command in what is typed, those of ssh: `~` at the begin of a line, then `.`; `~~` is one `~` for the
 * command. A connection that hangs leaves no other way out, as Ctrl-C is the command's.
 */
export class LeaveKey {
  #isAtStart = true;
  #hasTilde = false;

  /** Returns the bytes for the command, and whether the user leaves it. What was typed behind the keys is dropped. */
  take(typed: Buffer): { bytes: Buffer; leaves: boolean } {
    const bytes: number[] = [];
    for (const byte of typed) {
      if (this.#hasTilde) {
        this.#hasTilde = false;
        if (byte === DOT) return { bytes: Buffer.from(bytes), leaves: true };
        if (byte !== TILDE) bytes.push(TILDE);
      } else if (this.#isAtStart && byte === TILDE) {
        this.#hasTilde = true;
        continue;
      }
      bytes.push(byte);
      this.#isAtStart = ENTER.has(byte);
    }
    return { bytes: Buffer.from(bytes), leaves: false };
  }
}
