import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { silentLogger, systemClock } from '../../../core/system.ts';
import { freePort } from '../../../local/ports.ts';
import { Program } from '../../../local/program.ts';

const SERVES = "require('node:http').createServer((_, answer) => answer.end()).listen(process.env.PORT, '127.0.0.1')";

describe('a program of the embedded cluster', () => {
  /** Starts a program that is told this port first, then those that `others` gives. */
  async function startAt(first: number, others: () => number | Promise<number>) {
    const folder = mkdtempSync(join(tmpdir(), 'berth-ports-'));
    const asked: number[] = [];
    const program = new Program(
      {
        name: 'serves',
        argv: [process.execPath, '-e', SERVES],
        env: {},
        logPath: join(folder, 'log'),
        prepare: async () => ({}),
        place: async () => {
          const port = asked.length === 0 ? first : await others();
          asked.push(port);
          return { env: { PORT: String(port) }, readyUrl: `http://127.0.0.1:${port}/` };
        },
      },
      { clock: systemClock, logger: silentLogger },
    );
    await program.start().finally(() => rmSync(folder, { recursive: true }));
    return { asked, program };
  }

  test('whose free port was somebody else’s by the time it listened gets another', async (t) => {
    const somebody = createServer((_, answer) => answer.writeHead(404).end()).listen(0, '127.0.0.1');
    t.onTestFinished(() => void somebody.close());
    await new Promise((resolve) => somebody.once('listening', resolve));
    const { port: taken } = somebody.address() as AddressInfo;
    // A free port may also be taken by other tests before the program listens.
    const { asked, program } = await startAt(taken, freePort);
    t.onTestFinished(() => program.stop());
    assert.ok(asked.length > 1, `${asked}`);
    assert.equal((await fetch(`http://127.0.0.1:${asked.at(-1)}/`)).status, 200);
    await assert.rejects(
      startAt(taken, () => taken),
      /serves ended before it was ready[\s\S]*EADDRINUSE/,
    );
  });
});
