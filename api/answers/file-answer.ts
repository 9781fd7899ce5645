/** The answer to a GET of a file: conditions and ranges as in RFC 9110, the digest as in RFC 9530. */
import type { IncomingHttpHeaders } from 'node:http';
import { posix } from 'node:path';
import { contentTypeOf } from '../../core/artifacts/content-type.ts';
import { Problem } from '../problems/problems.ts';
import type { Answer } from '../route.ts';

interface File {
  name: string;
  bytes: number;
  /** sha256 of the content, hex. */
  digest: string;
}

/** Answers from the file's facts alone where no content is needed; otherwise reads it. Rejects with a Problem. */
export async function fileAnswer(file: File, asked: IncomingHttpHeaders, read: () => Promise<Buffer>): Promise<Answer> {
  const etag = `"${file.digest}"`;
  const common = {
    etag,
    'accept-ranges': 'bytes',
    'repr-digest': `sha-256=:${Buffer.from(file.digest, 'hex').toString('base64')}:`,
  };
  if (matches(asked['if-none-match'], etag)) return { status: 304, headers: common };
  // A range of another version of the content would be put behind the wrong beginning.
  const isSame = asked['if-range'] === undefined || asked['if-range'] === etag;
  const range = isSame ? rangeOf(asked.range, file) : undefined;
  const headers = {
    ...common,
    'content-type': contentTypeOf(file.name),
    'content-disposition': `attachment; filename*=UTF-8''${encoded(posix.basename(file.name))}`,
    // A browser that shows the file runs no script of it and loads nothing for it.
    'content-security-policy': "sandbox; default-src 'none'",
  };
  const content = await read();
  if (!range) return { status: 200, body: alone(content), headers };
  const { first, last } = range;
  return {
    status: 206,
    body: alone(content.subarray(first, last + 1)),
    headers: { ...headers, 'content-range': `bytes ${first}-${last}/${file.bytes}` },
  };
}

/** Returns a part of some memory as memory of its own: a reader who is slow with a small file must not keep all the others. */
function alone(part: Buffer): Buffer {
  return part.length === part.buffer.byteLength ? part : Buffer.from(part);
}

function matches(condition: string | undefined, etag: string): boolean {
  if (condition === undefined) return false;
  return condition.split(',').some((one) => ['*', etag, `W/${etag}`].includes(one.trim()));
}

/**
 * The part that a Range header asks for; undefined for the whole: several ranges, and what is no range of bytes, are left
 * unheeded, as the standard allows. Throws a Problem for a range beyond the end.
 */
function rangeOf(text: string | undefined, { name, bytes }: File): { first: number; last: number } | undefined {
  const [, from, to] = /^bytes=(\d*)-(\d*)$/i.exec(text?.replaceAll(' ', '') ?? '') ?? [];
  if (from === undefined || to === undefined || from + to === '') return undefined;
  if (from !== '' && to !== '' && Number(from) > Number(to)) return undefined;
  const first = from === '' ? Math.max(0, bytes - Number(to)) : Number(from);
  const last = from === '' || to === '' ? bytes - 1 : Math.min(Number(to), bytes - 1);
  if (first <= last) return { first, last };
  const message = `Range is "${text}", and artifact ${JSON.stringify(name)} has ${bytes} bytes.`;
  throw new Problem('RangeNotSatisfiable', message, { headers: { 'content-range': `bytes */${bytes}` } });
}

/** Percent-encodes a file's name for `filename*` (RFC 8187). */
export function encoded(name: string): string {
  return encodeURIComponent(name).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}
