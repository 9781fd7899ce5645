import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { describe, test } from 'vitest';
import { fileAnswer } from '../../../../api/answers/file-answer.ts';
import { Problem } from '../../../../api/problems/problems.ts';

const content = Buffer.from('0123456789');
const file = { name: 'a.txt', bytes: 10, digest: createHash('sha256').update(content).digest('hex') };
const etag = `"${file.digest}"`;
const answer = (headers: IncomingHttpHeaders) => fileAnswer(file, headers, async () => content);

describe('the answer with a file', () => {
  test('has its digest, type and a name to save it under', async () => {
    const { status, body, headers } = await answer({});
    assert.deepEqual([status, String(body)], [200, '0123456789']);
    const base64 = createHash('sha256').update(content).digest('base64');
    assert.deepEqual(headers, {
      etag,
      'accept-ranges': 'bytes',
      'repr-digest': `sha-256=:${base64}:`,
      'content-type': 'text/plain; charset=utf-8',
      'content-disposition': "attachment; filename*=UTF-8''a.txt",
      'content-security-policy': "sandbox; default-src 'none'",
    });
  });

  test('names a file of any name without breaking the header', async () => {
    const odd = { ...file, name: 'sub/a "b\r\n;é\'(1).HTML' };
    const { headers } = await fileAnswer(odd, {}, async () => content);
    assert.equal(
      headers?.['content-disposition'],
      "attachment; filename*=UTF-8''a%20%22b%0D%0A%3B%C3%A9%27%281%29.HTML",
    );
    assert.equal(headers?.['content-type'], 'text/html; charset=utf-8');
    const none = await fileAnswer({ ...file, name: 'Makefile' }, {}, async () => content);
    assert.equal(none.headers?.['content-type'], 'application/octet-stream');
  });

  test('keeps nothing in memory beside the bytes that are sent', async () => {
    const turn = Buffer.alloc(1024 * 1024, content);
    const read = async () => turn.subarray(20, 30);
    for (const headers of [{}, { range: 'bytes=2-3' }]) {
      const { body } = await fileAnswer(file, headers, read);
      assert.ok(Buffer.isBuffer(body));
      assert.ok(body.buffer.byteLength <= 64 * 1024, `${body.buffer.byteLength}`);
      assert.equal(String(body), 'range' in headers ? '23' : '0123456789');
    }
    assert.equal((await fileAnswer(file, {}, async () => turn)).body, turn);
  });

  const parts: [string, string, string][] = [
    ['bytes=0-3', '0123', '0-3'],
    ['bytes=4-', '456789', '4-9'],
    ['bytes=-3', '789', '7-9'],
    ['bytes=8-100', '89', '8-9'],
    ['bytes=-100', '0123456789', '0-9'],
    ['Bytes = 9-9', '9', '9-9'],
  ];
  for (const [range, part, where] of parts) {
    test(`is the part for ${range}`, async () => {
      const { status, body, headers } = await answer({ range });
      assert.deepEqual([status, String(body), headers?.['content-range']], [206, part, `bytes ${where}/10`]);
    });
  }

  for (const range of ['bytes=10-', 'bytes=99-100', 'bytes=-0', 'bytes=99999999999999999999-']) {
    test(`is 416 for ${range}, which lies beyond the end`, async () => {
      await assert.rejects(answer({ range }), (error) => {
        assert.ok(error instanceof Problem);
        assert.deepEqual([error.code, error.headers], ['RangeNotSatisfiable', { 'content-range': 'bytes */10' }]);
        return true;
      });
    });
  }

  for (const range of ['bytes=3-1', 'bytes=-', 'bytes=0-1,3-4', 'lines=0-1', 'bytes', 'bytes=a-b', 'bytes=0--1']) {
    test(`is the whole for ${range}, which is no single range of bytes`, async () => {
      assert.equal((await answer({ range })).status, 200);
    });
  }

  test('is no part of another content than If-Range names', async () => {
    assert.equal((await answer({ range: 'bytes=0-1', 'if-range': etag })).status, 206);
    assert.equal((await answer({ range: 'bytes=0-1', 'if-range': '"other"' })).status, 200);
  });

  test('is 304 without a read for a client that has the content', async () => {
    const never = () => Promise.reject(new Error('read'));
    for (const condition of [etag, `"x", ${etag}`, `W/${etag}`, '*']) {
      const { status, body } = await fileAnswer(file, { 'if-none-match': condition }, never);
      assert.deepEqual([status, body], [304, undefined]);
    }
    assert.equal((await answer({ 'if-none-match': '"x"' })).status, 200);
  });

  test('of an empty file is 416 for every range', async () => {
    const empty = { ...file, bytes: 0 };
    await assert.rejects(
      fileAnswer(empty, { range: 'bytes=0-0' }, async () => Buffer.alloc(0)),
      Problem,
    );
    await assert.rejects(
      fileAnswer(empty, { range: 'bytes=-1' }, async () => Buffer.alloc(0)),
      Problem,
    );
  });
});
