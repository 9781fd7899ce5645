import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { OnTerminal } from '../../support/on-terminal.ts';
import { skipIf, skipWithout } from '../../support/requires.ts';
import { Caller } from './support.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const BERTH = join(ROOT, 'bin', 'berth');
const built = ['keeper', 'bin/berth-enter'].every((name) => existsSync(join(ROOT, 'build', name)));
const noHelper = skipWithout('keeper', built, 'there is no build/keeper or build/bin/berth-enter: run make keeper');

describe('a terminal inside a session', skipIf(noHelper), () => {
  const caller = new Caller(ROOT);
  beforeAll(async () => {
    await caller.ok('local', 'up', '--detach');
    await caller.ok('create', 'box', '--result', 'text', '--env', 'GREETING=hi', '--', 'sh', '-c', 'pwd');
  });
  afterAll(async () => {
    await caller.berth(['local', 'down']);
    caller.remove();
  });

  const on = (command: string) => new OnTerminal(command, caller.env);
  const listed = async () => caller.ok('exec', '--list', 'box');

  test('is a shell in the agent’s directory, with its variables, of this terminal’s size and type, and gives its exit code', async () => {
    const directory = (await caller.ok('turn', 'box', 'x')).trim();
    const terminal = on(`stty rows 33 cols 77; ${BERTH} shell box; echo code=$?; stty -a | tr ' ' '\\n' | grep icanon`);
    terminal.types('echo "<$GREETING $TERM $(stty size) $(pwd)>"\n');
    await terminal.says(`<hi xterm 33 77 ${directory}>`);
    terminal.types('(echo $((600 + 66)); exec sleep 1000)\n');
    await terminal.says('666');
    terminal.types('\x03');
    terminal.types('printf "\\033[31mred\\033[0m\\200\\n"; exit 9\n');
    await terminal.says('\x1b[31mred\x1b[0m');
    await terminal.says(/code=9\r\nicanon/);
    assert.equal(await terminal.ended, 0);
  });

  test('has the terminal’s size as it changes, for exec -it too', async () => {
    const terminal = on(
      `tty; ${BERTH} exec -it box -- sh -c 'trap "stty size" WINCH; echo ready; while :; do sleep 0.05; done'`,
    );
    await terminal.says('ready');
    execFileSync('stty', ['-F', /\/dev\/\S+/.exec(terminal.shown)?.[0] as string, 'rows', '51', 'cols', '101']);
    await terminal.says('51 101');
    terminal.types('\x03');
    assert.notEqual(await terminal.ended, 0);
    await eventually(async () => !/Running/.test(await listed()));
  });

  test('is left with Enter, tilde and dot, and taken again', async () => {
    const terminal = on(`${BERTH} exec -it --id left box -- sh -i; echo code=$?; read word`);
    terminal.types('cd /; echo $((700 + 77))\n');
    await terminal.says('777');
    terminal.types('\r~.');
    await terminal.says(/left; the command ends after a minute.*berth exec -it --attach left box/);
    await terminal.says('code=255');
    terminal.types('\n');
    await terminal.ended;
    const again = on(`${BERTH} exec -it --attach left box; echo code=$?`);
    again.types('echo "<$PWD>"; exit 4\n');
    await again.says('</>');
    await again.says('code=4');
    await again.ended;
  });

  test('ends the command when the terminal is closed', async () => {
    const terminal = on(`echo pid=$$; exec ${BERTH} exec -it --id closed box -- sh -i`);
    terminal.types('echo $((800 + 88))\n');
    await terminal.says('888');
    process.kill(Number(/pid=(\d+)/.exec(terminal.shown)?.[1]), 'SIGHUP');
    assert.equal(await terminal.ended, 129);
    await eventually(async () => !/closed +Running/.test(await listed()));
  });

  test('is refused where there is no shell, where there is no terminal, and where nobody stays', async () => {
    const terminal = on(`${BERTH} shell box --shell /no/shell; echo code=$?; stty -a | tr ' ' '\\n' | grep icanon`);
    await terminal.says(/session box has no shell \/no\/shell that runs .*does not exist.*--shell/);
    await terminal.says(/code=255\r\nicanon/);
    await terminal.ended;
    for (const [words, why] of [
      [['shell', 'box'], /shell needs a terminal.*berth exec box -- PROGRAM/],
      [['exec', '-it', 'box', '--', 'sh'], /-t needs a terminal/],
      [['exec', '-t', '--detach', 'box', '--', 'sh'], /leave --detach out/],
      [['exec', '-t', '--list', 'box'], /leave it out with --list/],
    ] as const) {
      const { code, stderr } = await caller.berth([...words]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, why);
    }
  });
});
