/** Bodies of requests: JSON in UTF-8 or bytes, not compressed. */
import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from '../problems/problems.ts';
import { parseJson } from './json.ts';

export function acceptJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      checkCharset(request.headers['content-type']);
      done(null, parseJson(utf8(body as Buffer)));
    } catch (error) {
      done(error as Error);
    }
  });
}

/** Leaves bodies to the handlers of the scope's routes, unread and whatever their type is. */
export function acceptBytes(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request, _body, done) => done(null));
}

/** Returns the text of the bytes, or refuses them: a decoder would put U+FFFD in the place of what it cannot read. */
function utf8(bytes: Buffer): string {
  const text = bytes.toString('utf8');
  if (isUtf8(bytes)) return text;
  const at = Buffer.from(text).findIndex((byte, at) => byte !== bytes[at]);
  const advice = 'send JSON in UTF-8, and bytes that are no text as base64 in a string';
  throw new Problem('InvalidJson', `The body is not UTF-8 at byte ${at}: ${advice}.`);
}

/** Refuses a compressed body: it would be read as what it is not. */
export function checkEncoding({ headers }: FastifyRequest): void {
  const encoding = headers['content-encoding'];
  if (encoding === undefined || /^(identity)?$/i.test(encoding.trim())) return;
  const message = `is "${encoding}"; send the body as it is, without this header`;
  throw new Problem('UnsupportedMediaType', `Content-Encoding ${message}.`, {
    fields: [{ field: 'Content-Encoding', message }],
  });
}

/** Refuses a body in another encoding than UTF-8 (RFC 8259), because it would be read wrongly. */
function checkCharset(contentType = ''): void {
  const [, charset] = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(contentType) ?? [];
  if (charset === undefined || /^(utf-?8|us-ascii)$/i.test(charset)) return;
  const message = `has charset "${charset}"; send JSON in UTF-8, with Content-Type: application/json`;
  throw new Problem('UnsupportedMediaType', `Content-Type ${message}.`, {
    fields: [{ field: 'Content-Type', message }],
  });
}
