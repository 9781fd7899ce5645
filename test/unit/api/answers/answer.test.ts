import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { test } from 'vitest';
import { send } from '../../../../api/answers/answer.ts';

/** A reply that keeps what it is given. */
class Kept {
  readonly request = { raw: { complete: true } };
  readonly fields: Record<string, unknown> = {};
  payload: unknown;

  code = () => this;
  header = (name: string, value: unknown) => this.headers({ [name]: value });
  headers(fields: object) {
    Object.assign(this.fields, fields);
    return this;
  }
  send(payload: unknown) {
    this.payload = payload;
    return this;
  }
}

test('a long body is sent in pieces with its length, so that a slow reader is seen to read; a short one at once', async () => {
  const long = new Kept();
  const body = `${'x'.repeat(200_000)}ü`;
  send(long as unknown as FastifyReply, { status: 200, body, headers: { 'content-type': 'text/plain' } });
  assert.ok(long.payload instanceof Readable);
  const pieces: Buffer[] = await long.payload.toArray();
  assert.ok(pieces.length > 1 && pieces.every(({ length }) => length <= 64 * 1024));
  assert.equal(Buffer.concat(pieces).toString(), body);
  assert.deepEqual(long.fields, { 'content-type': 'text/plain', 'content-length': 200_002 });
  const short = new Kept();
  send(short as unknown as FastifyReply, { status: 200, body: { a: 1 } });
  assert.equal(String(short.payload), '{"a":1}');
});
