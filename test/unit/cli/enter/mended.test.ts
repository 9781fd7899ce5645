import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Inside, Place } from '../../../../cli/cluster/inside.ts';
import { begunAnew, readMended } from '../../../../cli/enter/mended.ts';
import { EnterError } from '../../../../core/enter/client.ts';
import { FileReplacedError, type Rest } from '../../../../core/enter/files.ts';
import type { FileEntry } from '../../../../core/enter/hello.ts';
import { TransportError } from '../../../../core/kube/errors.ts';
import { seededRandom } from '../../../support/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const PLACE: Place = { root: 'work', path: 'a' };
const never = () => new Promise<never>(() => {});

function surroundings() {
  const clock = new VirtualClock();
  return { clock, random: seededRandom(), interrupted: new AbortController().signal };
}

/** A session with one file whose connection is cut after so many bytes, each time. */
function session(content: () => Buffer, pieceBytes: number, cutAfter: number) {
  const asked: number[] = [];
  const entryOf = (): FileEntry => ({
    name: 'a',
    type: 'file',
    bytes: content().length,
    mode: '0644',
    modified: '',
    version: content().toString('hex'),
  });
  const read = async (_: Place, rest?: Rest) => {
    const entry = entryOf();
    const offset = rest?.offset ?? 0;
    asked.push(offset);
    if (rest && rest.of.version !== entry.version) throw new FileReplacedError('work/a');
    const data = (async function* () {
      for (let at = offset; at < entry.bytes; at += pieceBytes) {
        if (at - offset >= cutAfter) throw new TransportError('cut');
        yield content().subarray(at, at + pieceBytes);
      }
      return { bytes: entry.bytes - offset, sha256: '' };
    })();
    return { entry, data };
  };
  return { asked, inside: { read } as unknown as Inside };
}

async function read(
  clock: VirtualClock,
  transfer: Promise<{ data: AsyncGenerator<Buffer, unknown> }>,
): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let isOver = false;
  const reading = (async () => {
    for await (const piece of (await transfer).data) pieces.push(piece);
  })().finally(() => {
    isOver = true;
  });
  reading.catch(() => {});
  while (!isOver) await clock.advance(1000);
  await reading;
  return Buffer.concat(pieces);
}

describe('a file that is read over connections that are cut', () => {
  test('comes with each byte once, from where it was cut', async () => {
    const cli = surroundings();
    const content = Buffer.from(Array.from({ length: 100 }, (_, i) => i));
    const { asked, inside } = session(() => content, 7, 21);
    const got = await read(cli.clock, readMended({ inside, watch: never }, PLACE, cli));
    assert.deepEqual(got, content);
    assert.deepEqual(asked, [0, 21, 42, 63, 84]);
  });

  test('is given up where it is another one by then', async () => {
    const cli = surroundings();
    let content = Buffer.alloc(100, 'x');
    const { inside } = session(() => content, 10, 50);
    const transfer = readMended({ inside, watch: never }, PLACE, cli);
    await transfer;
    content = Buffer.alloc(100, 'y');
    const { data } = await transfer;
    const reading = (async () => {
      for await (const _ of data);
    })();
    const failed = assert.rejects(reading, FileReplacedError);
    await cli.clock.advance(10_000);
    await failed;
  });

  test('is given up after two minutes without a connection, or when the session has its pod no more', async () => {
    for (const [watch, why] of [
      [never, /cut/],
      [() => Promise.reject(new EnterError({ code: 'Suspended', message: 'it was suspended' })), /it was suspended/],
    ] as const) {
      const cli = surroundings();
      const { inside, asked } = session(() => Buffer.alloc(100), 10, 0);
      const reading = read(cli.clock, readMended({ inside, watch }, PLACE, cli));
      await assert.rejects(reading, why);
      assert.ok(cli.clock.monotonic() <= 130_000);
      assert.ok(asked.length > 0);
    }
  });
});

describe('a transfer that begins anew', () => {
  test('is tried some times after a loss, and not after a refusal', async () => {
    const outcomes: [unknown, number][] = [
      [new TransportError('cut'), 5],
      [new EnterError({ code: 'NoSpace', message: 'full' }), 1],
      [new EnterError({ code: 'Suspended', message: 'asleep' }), 1],
      [new Error('the file shrank'), 1],
    ];
    for (const [error, count] of outcomes) {
      const cli = surroundings();
      let tries = 0;
      const sending = begunAnew({ watch: never }, cli, async (begun) => {
        tries += 1;
        begun();
        throw error;
      });
      const failed = assert.rejects(sending, (caught) => caught === error);
      await cli.clock.advance(60_000);
      await failed;
      assert.equal(tries, count, String(error));
    }
  });

  test('waits for a suspension that may be undone', async () => {
    const cli = surroundings();
    const errors = [new TransportError('cut'), new EnterError({ code: 'Suspended', message: 'it is being suspended' })];
    const sending = begunAnew({ watch: never }, cli, async () => {
      const error = errors.shift();
      if (error) throw error;
      return 'whole';
    });
    await cli.clock.advance(60_000);
    assert.equal(await sending, 'whole');
  });
});
