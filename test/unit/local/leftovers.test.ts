import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { Home } from '../../../local/home.ts';
import { endLeftovers } from '../../../local/leftovers.ts';

describe('the remainder of a killed cluster', { timeout: 60_000 }, () => {
  test('includes a child that was forked before the kill and begins its program later', async (t) => {
    const home = new Home(mkdtempSync(join(tmpdir(), 'berth-leftovers-')));
    home.make();
    // A cluster holds its presence, and so does its child until exec; until then the child carries no mark.
    const { presence } = home;
    presence?.hold();
    const begun = join(home.path, 'begun');
    const late = `exec 3<>"$0/presence"; echo held; read go; exec 3<&- env BERTH_LOCAL_HOME="$0" sleep 1000`;
    const child = spawn('sh', ['-c', late, home.path], { stdio: ['pipe', 'pipe', 'ignore'] });
    t.onTestFinished(() => {
      child.kill('SIGKILL');
      rmSync(home.path, { recursive: true, force: true });
    });
    await once(child.stdout, 'data');
    presence?.letGo();

    const ended = once(child, 'exit');
    const over = endLeftovers(home).then(() => writeFileSync(begun, ''));
    const soon = new Promise((resolve) => setTimeout(resolve, 500));
    await Promise.race([over, soon]);
    assert.equal(existsSync(begun), false, 'the next cluster does not begin before');
    child.stdin.write('go\n');
    await over;
    const [, signal] = await ended;
    assert.equal(signal, 'SIGKILL');
  });

  test('holds up nobody once it is gone', async (t) => {
    const home = new Home(mkdtempSync(join(tmpdir(), 'berth-leftovers-')));
    t.onTestFinished(() => rmSync(home.path, { recursive: true, force: true }));
    home.make();
    const { presence } = home;
    presence.hold();
    assert.equal(home.presence.isHeld(), true);
    presence.letGo();
    assert.equal(home.presence.isHeld(), false);
    await endLeftovers(home);
  });
});
