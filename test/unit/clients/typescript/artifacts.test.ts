import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { type Artifact, ContentDamaged, problems } from '../../../../clients/typescript/src/index.ts';
import { type Answerer, json, type Misbehaving, problem, rejection, serving } from './server.ts';

const CONTENT = Buffer.from('0123456789'.repeat(20_000));
const DIGEST = createHash('sha256').update(CONTENT).digest();

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-artifact-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

interface Fault {
  /** Bytes to send before the connection is cut. */
  cutAfter?: number;
  etag?: string;
  flip?: boolean;
}

/** Serves the content as the HTTP API does, with this fault. */
const content =
  ({ cutAfter, etag = 'e1', flip }: Fault = {}): Answerer =>
  (response, { headers }) => {
    const [, from] = /^bytes=(\d+)-$/.exec(headers.range ?? '') ?? [];
    const isPart = from !== undefined && headers['if-range'] === `"${etag}"`;
    const first = isPart ? Number(from) : 0;
    const body = Buffer.from(CONTENT.subarray(first));
    if (flip) body[5] = 1;
    response.writeHead(isPart ? 206 : 200, {
      etag: `"${etag}"`,
      'repr-digest': `sha-256=:${DIGEST.toString('base64')}:`,
      'content-length': String(body.length),
      ...(isPart ? { 'content-range': `bytes ${first}-${CONTENT.length - 1}/${CONTENT.length}` } : {}),
    });
    if (cutAfter === undefined) response.end(body);
    else response.write(body.subarray(0, cutAfter), () => response.socket?.destroySoon());
  };

const list = json(200, {
  items: [{ name: 'out/a b.bin', bytes: CONTENT.length, digest: DIGEST.toString('hex'), executable: true }],
});
const named = (server: Misbehaving): Artifact =>
  server.client().session('notes').turn('notes-1').artifact('out/a b.bin');

describe('an artifact', () => {
  test('is listed with size and digest, and saved with its permission to be run', async () => {
    const server = await serving(list, content());
    const [artifact] = await server.client().session('notes').turn('notes-1').artifacts();
    assert.ok(artifact);
    assert.deepEqual(
      [artifact.name, artifact.bytes, artifact.digest],
      ['out/a b.bin', CONTENT.length, DIGEST.toString('hex')],
    );
    await artifact.save(join(folder, 'a'));
    assert.ok(readFileSync(join(folder, 'a')).equals(CONTENT));
    assert.equal(statSync(join(folder, 'a')).mode & 0o100, 0o100);
    assert.deepEqual(readdirSync(folder), ['a']);
    assert.match(server.seen[1]?.url ?? '', /\/turns\/notes-1\/artifacts\/out%2Fa%20b\.bin$/);
  });

  test('whose transfer is cut again and again goes on where it was', async () => {
    const server = await serving(
      content({ cutAfter: 0 }),
      content({ cutAfter: 70_000 }),
      problem(503, 'Overloaded'),
      content({ cutAfter: 1 }),
      content(),
    );
    await named(server).save(join(folder, 'a'));
    assert.ok(readFileSync(join(folder, 'a')).equals(CONTENT));
    const ranges = server.seen.map(({ headers }) => [headers.range, headers['if-range']] as (string | undefined)[]);
    assert.deepEqual(ranges[0], [undefined, undefined]);
    assert.equal(ranges.at(-1)?.[1], '"e1"');
    const starts = ranges.slice(2).map(([range]) => Number(/\d+/.exec(range ?? '')));
    assert.deepEqual(
      starts,
      starts.toSorted((a, b) => a - b),
    );
    assert.ok((starts.at(-1) ?? 0) > 0);
  });

  test('cut behind its last byte is whole, and no more is asked for', async () => {
    const unended: Answerer = (response) => {
      response.writeHead(200, { etag: '"e1"' });
      response.write(CONTENT, () => response.socket?.destroySoon());
    };
    const server = await serving(list, unended);
    const [artifact] = await server.client().session('notes').turn('notes-1').artifacts();
    assert.ok(Buffer.from((await artifact?.read()) ?? []).equals(CONTENT));
    assert.equal(server.seen.length, 2);
  });

  test('that was damaged on its way is read once more, from its beginning', async () => {
    const server = await serving(content({ flip: true }), content(), content({ flip: true }), content());
    await named(server).save(join(folder, 'a'));
    assert.ok(readFileSync(join(folder, 'a')).equals(CONTENT));
    assert.ok(Buffer.from(await named(server).read()).equals(CONTENT));
    assert.deepEqual(
      server.seen.map(({ headers }) => headers.range),
      [undefined, undefined, undefined, undefined],
    );
  });

  test('with another byte is damaged: there is no file, and the one that was there stays', async () => {
    const server = await serving(content({ flip: true }));
    writeFileSync(join(folder, 'a'), 'before');
    const error = await rejection(named(server).save(join(folder, 'a')));
    assert.ok(error instanceof ContentDamaged);
    assert.match(
      error.message,
      /^artifact "out\/a b\.bin" has the sha256 [0-9a-f]{64}, and what came has [0-9a-f]{64}; read it again$/,
    );
    assert.equal(server.seen.length, 2);
    assert.equal(readFileSync(join(folder, 'a'), 'utf8'), 'before');
    assert.deepEqual(readdirSync(folder), ['a']);
  });

  test('that was replaced between two parts is not put together of both', async () => {
    const server = await serving(content({ cutAfter: 50_000 }), content({ etag: 'e2' }));
    const stream = async () => {
      for await (const _ of named(server).stream());
    };
    const error = await rejection(stream());
    assert.ok(error instanceof ContentDamaged);
    assert.match(error.message, /was replaced while it was read/);
    // The next time it is another one as a whole.
    const again = await serving(content({ cutAfter: 50_000 }), content({ etag: 'e2' }));
    assert.ok(Buffer.from(await named(again).read()).equals(CONTENT));
    assert.equal(again.seen.at(-1)?.headers.range, undefined);
  });

  test('of which there is none is refused, and leaves nothing', async () => {
    const server = await serving(problem(404, 'NoArtifact'));
    assert.ok((await rejection(named(server).save(join(folder, 'a')))) instanceof problems.NoArtifact);
    assert.deepEqual(readdirSync(folder), []);
  });

  test('that cannot be written fails with the error of the file, before anything is asked for', async () => {
    const server = await serving(content());
    const error = await rejection(named(server).save(join(folder, 'nothing', 'a')));
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOENT');
    assert.equal(server.seen.length, 0);
  });

  test('that is aborted leaves no part of a file', async () => {
    const reason = new Error('enough');
    const control = new AbortController();
    const server = await serving((response, seen) => {
      content({ cutAfter: 50_000 })(response, seen);
      setImmediate(() => control.abort(reason));
    });
    assert.equal(await rejection(named(server).save(join(folder, 'a'), { signal: control.signal })), reason);
    assert.deepEqual(readdirSync(folder), []);
  });
});
