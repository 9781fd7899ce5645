import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, test } from 'vitest';
import { Download } from '../../../../api/inside/files.ts';
import type { FrameStream } from '../../../../core/enter/client.ts';
import type { EnterFrame } from '../../../../core/enter/frames.ts';

const DIGEST = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824';
const data = (text: string): EnterFrame => ({ kind: 'data', payload: Buffer.from(text) });
const end = (bytes: number, sha256: string): EnterFrame => ({
  kind: 'end',
  payload: Buffer.from(JSON.stringify({ bytes, sha256 })),
});

describe('a download from a session', () => {
  const make = (frames: EnterFrame[]) => {
    const facts = { isClosed: false, bytes: 0, ends: [] as unknown[] };
    const stream = {
      close: () => {
        facts.isClosed = true;
      },
      async *[Symbol.asyncIterator]() {
        yield* frames;
      },
    } as unknown as FrameStream;
    const trace = {
      add: (bytes: number) => {
        facts.bytes += bytes;
      },
      end: (error?: unknown) => void facts.ends.push(error),
    };
    return { facts, download: new Download(stream, trace) };
  };
  const text = async (download: Download) => Buffer.concat(await Readable.from(download.bytes()).toArray()).toString();

  test('yields what came and ends once it is what was sent', async () => {
    const { facts, download } = make([data('he'), data('llo'), end(5, DIGEST)]);
    assert.equal(await text(download), 'hello');
    assert.deepEqual(facts, { isClosed: true, bytes: 5, ends: [undefined] });
    assert.equal(download.end?.sha256, DIGEST);
  });

  test('fails where it has another length or digest than was sent, and without an end', async () => {
    for (const frames of [[data('hello'), end(6, DIGEST)], [data('hallo'), end(5, DIGEST)], [data('hello')]]) {
      const { facts, download } = make(frames);
      await assert.rejects(text(download), /not what was sent/);
      assert.equal(facts.isClosed, true);
      assert.ok(facts.ends[0] instanceof Error);
    }
  });

  test('closes its connection where the client leaves', async () => {
    const { facts, download } = make([data('he'), data('llo'), end(5, DIGEST)]);
    const bytes = download.bytes();
    await bytes.next();
    await bytes.return(undefined);
    assert.equal(facts.isClosed, true);
    assert.equal(facts.ends.length, 1);
  });
});
