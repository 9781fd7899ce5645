import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { OnTerminal } from '../../support/on-terminal.ts';

const MODULE = join(import.meta.dirname, '..', '..', '..', 'cli', 'enter', 'terminal.ts');

/** Takes the terminal, tells every byte and size, and ends in the way that is typed. */
const PROGRAM = `
import { RawTerminal } from ${JSON.stringify(MODULE)};
const tell = (word, { rows, columns }) => process.stdout.write(word + rows + 'x' + columns + ' ');
const terminal = new RawTerminal({
  stdin: process.stdin,
  stdout: process.stdout,
  onSize: () => tell("now", process.stdout),
  onLeave: () => terminal.close(true),
});
tell("pid" + process.pid + " size", process.stdout);
for await (const bytes of terminal) {
  process.stdout.write([...bytes].map((byte) => byte.toString(16) + ' ').join(''));
  const way = bytes.toString();
  if (way === 'c') terminal.close(false);
  if (way === 't') throw new Error('thrown');
  if (way === 'x') process.exit(1);
}
process.stdout.write('over');
`;

describe('a terminal that a command has', () => {
  async function start() {
    const node = `'${process.execPath}' --disable-warning=ExperimentalWarning --input-type=module -e '${PROGRAM.replaceAll("'", `'\\''`)}'`;
    const terminal = new OnTerminal(`stty rows 33 cols 77; tty; ${node}; echo ended; read word`, {});
    await terminal.says(/size33x77 /);
    const pty = /\/dev\/\S+/.exec(terminal.shown)?.[0] as string;
    const pid = Number(/pid(\d+)/.exec(terminal.shown)?.[1]);
    const stty = (...args: string[]) => execFileSync('stty', ['-F', pty, ...args], { encoding: 'utf8' });
    const modes = () => new Set(stty('-a').split(/\s+/));
    const isRaw = () => ['-icanon', '-echo', '-isig'].every((mode) => modes().has(mode));
    const isUsual = () => ['icanon', 'echo', 'isig'].every((mode) => modes().has(mode));
    const end = async () => {
      await terminal.says(/ended/);
      assert.ok(isUsual(), stty('-a'));
      terminal.types('\n');
      await terminal.ended;
    };
    return { terminal, pid, stty, isRaw, isUsual, end };
  }

  test('gives every byte, that of Ctrl-C too, and its sizes', async () => {
    const { terminal, stty, isRaw, end } = await start();
    assert.ok(isRaw(), stty('-a'));
    terminal.types('\x03\x1a\x04\x1c\r\x7f\u00fc');
    await terminal.says('3 1a 4 1c d 7f c3 bc ');
    stty('rows', '50', 'cols', '99');
    await terminal.says('now50x99 ');
    terminal.types('c');
    await terminal.says('over');
    await end();
  });

  test('is as it was after an error, an exit and a signal, and when the user leaves', async () => {
    const ways: ((started: Awaited<ReturnType<typeof start>>) => unknown)[] = [
      ({ terminal }) => terminal.types('t'),
      ({ terminal }) => terminal.types('x'),
      ({ terminal }) => terminal.types('\r~.'),
      ({ pid }) => process.kill(pid, 'SIGTERM'),
      ({ pid }) => process.kill(pid, 'SIGINT'),
      ({ pid }) => process.kill(pid, 'SIGQUIT'),
    ];
    await Promise.all(
      ways.map(async (way) => {
        const started = await start();
        assert.ok(started.isRaw());
        way(started);
        await started.end();
      }),
    );
  });

  test('is as it was while the program is stopped, and raw again with its size when it goes on', async () => {
    const { terminal, pid, stty, isRaw, isUsual, end } = await start();
    process.kill(pid, 'SIGTSTP');
    await eventually(isUsual);
    stty('rows', '20', 'cols', '60');
    process.kill(pid, 'SIGCONT');
    await eventually(isRaw);
    await terminal.says('now20x60');
    terminal.types('c');
    await end();
  });
});
