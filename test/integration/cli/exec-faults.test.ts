import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { helpersOf, noHelper } from '../../support/helper-run.ts';
import { type ControllerProcess, Installation } from '../../support/installation.ts';
import { seededRandom } from '../../support/random.ts';
import { skipIf } from '../../support/requires.ts';
import { Wire } from '../../support/wire.ts';
import { ofSeq, printedBy } from './long-output.ts';
import { Caller } from './support.ts';

/** Bytes on the wire between two faults, on average. */
const BETWEEN = 8_000_000;
const LINES = 12_000_000;
/** SEED=n repeats a run. */
const SEED = Number(process.env.SEED ?? randomInt(2 ** 31));

const FAULTS = ['connections are cut', 'helpers are killed', 'helpers stand for a moment', 'the controller is killed'];

/** Deals the faults in a new order each time, so that none is left out. */
function* dealt(uniform: () => number): Generator<string, never> {
  for (;;) {
    const left = [...FAULTS];
    while (left.length > 0) yield left.splice(Math.floor(uniform() * left.length), 1)[0] as string;
  }
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended.
    }
  }
}

describe('a command that prints 100 MB', skipIf(noHelper), () => {
  const work = mkdtempSync(join(tmpdir(), 'berth-faults-'));
  const installation = new Installation();
  const stopped: NodeJS.Timeout[] = [];
  let caller: Caller;
  let wire: Wire;
  let controller: ControllerProcess;

  beforeAll(async () => {
    await installation.begin();
    controller = installation.startController();
    const config = readFileSync(installation.kubeconfig, 'utf8');
    const [, port = ''] = /https:\/\/127\.0\.0\.1:(\d+)/.exec(config) ?? assert.fail(config);
    wire = new Wire(Number(port));
    await wire.open();
    const path = join(work, 'kubeconfig');
    writeFileSync(path, config.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${wire.port}`));
    caller = new Caller(work, { KUBECONFIG: path });
    const command = ['sh', '-c', 'eval "$(cat)"'];
    await installation.create('notes', { agent: { command, input: 'Text', result: 'Text', workingDir: work } });
    await installation.turn('notes', 'first', 'true');
    assert.equal((await installation.ended('first')).status?.phase, 'Succeeded', installation.logs());
  });
  afterAll(async () => {
    for (const timer of stopped) clearTimeout(timer);
    wire?.close();
    await installation.stop();
    caller?.remove();
    rmSync(work, { recursive: true, force: true });
  });

  test(`gives each byte once and its exit code, whatever fails meanwhile (SEED=${SEED})`, async () => {
    console.log(`SEED=${SEED}`);
    const dice = seededRandom(SEED);
    const faults = dealt(dice.uniform);
    const counts = new Map<string, number>(FAULTS.map((fault) => [fault, 0]));
    const cause: Record<string, () => number> = {
      'connections are cut': () => {
        wire.cut();
        return 1;
      },
      'helpers are killed': () => {
        const helpers = helpersOf(installation.home);
        signalAll(helpers, 'SIGKILL');
        return helpers.length;
      },
      'helpers stand for a moment': () => {
        const helpers = helpersOf(installation.home);
        signalAll(helpers, 'SIGSTOP');
        // The pause is the fault itself; nothing waits for it but the command.
        stopped.push(setTimeout(() => signalAll(helpers, 'SIGCONT'), 500 * dice.uniform()));
        return helpers.length;
      },
      'the controller is killed': () => {
        controller.child.kill('SIGKILL');
        controller = installation.startController();
        return 1;
      },
    };
    let left = BETWEEN * dice.uniform();
    wire.onBytes = (count) => {
      left -= count;
      if (left > 0) return;
      left = 2 * BETWEEN * dice.uniform();
      const fault = faults.next().value;
      counts.set(fault, (counts.get(fault) ?? 0) + (cause[fault]?.() ?? 0));
    };
    const script = `echo started >>starts; seq 1 ${LINES}; exit 3`;
    const { child } = caller.start(['exec', 'notes', '--', 'sh', '-c', script]);
    const { code, bytes, sha256, stderr } = await printedBy(child);
    wire.onBytes = () => {};
    assert.deepEqual([code, bytes, sha256], [3, ...ofSeq(LINES)], `SEED=${SEED}: ${stderr}`);
    assert.equal(readFileSync(join(work, 'starts'), 'utf8'), 'started\n');
    for (const [fault, count] of counts) assert.ok(count > 0, `SEED=${SEED}: never happened: ${fault}`);
    // The session is as it was, and its controller serves it.
    await installation.turn('notes', 'last', 'echo done');
    assert.equal((await installation.ended('last')).status?.output, 'done\n');
    assert.equal((await installation.session('notes')).status?.incarnation, 1);
  });
});
