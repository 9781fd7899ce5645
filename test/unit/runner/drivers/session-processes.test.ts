import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, test } from 'vitest';
import { endOf, SessionProcesses } from '../../../../runner/drivers/session-processes.ts';
import type { Contained } from '../../../../runner/process/contained.ts';
import type { Exit } from '../../../../runner/process/exit.ts';
import { StartError } from '../../../../runner/system/errors.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const EXIT: Exit = { code: null, signal: 'SIGKILL' };

/** Reports whether the end of a process is told while others of its family still exist. */
async function toldBefore(killing: boolean): Promise<boolean> {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const family = { exited: Promise.resolve(EXIT), gone, killing } as unknown as Contained;
  let told = false;
  const end = endOf(family, new AbortController().signal, new VirtualClock()).then(() => {
    told = true;
  });
  await new Promise((next) => setImmediate(next));
  const before = told;
  resolve();
  await end;
  return before;
}

test('the end of a process is told at once, but where its family is being killed, when nobody of that is left', async () => {
  assert.deepEqual([await toldBefore(false), await toldBefore(true)], [true, false]);
});

const folder = mkdtempSync(join(tmpdir(), 'berth-processes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a program whose #! line ends with a carriage return is told so, and not that it does not exist', async () => {
  const processes = new SessionProcesses(async () => {
    throw new StartError('exec', 'ENOENT');
  }, new VirtualClock());
  const file = join(folder, 'agent');
  const start = () => processes.start({ file } as never);
  for (const line of ['#!/usr/bin/env python3\r\nprint(1)\r\n', '#!/bin/sh\r']) {
    writeFileSync(file, line);
    await assert.rejects(start(), {
      code: 'CommandNotFound',
      message: /the #! line of .*agent ends with a carriage return.*\(LF, not CRLF\)$/,
    });
  }
  for (const line of ['#!/no/such\necho "\r"\r\n', 'text\r\n']) {
    writeFileSync(file, line);
    await assert.rejects(start(), {
      code: 'CommandNotFound',
      message: /what runs .*agent \(its #! line or loader\) does not exist/,
    });
  }
  rmSync(file);
  await assert.rejects(start(), { code: 'CommandNotFound', message: /does not exist/ });
});
