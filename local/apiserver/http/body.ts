import type { IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { tooDeepAt } from '../../../core/depth.ts';
import { parseAsApiServer, rawNumber } from '../../../core/json.ts';
import { mayHavePrototypeKey, prototypeKeyAt } from '../../../core/prototype-key.ts';
import { badRequest, prototypeKeyRefused, tooLarge, unsupportedMediaType } from '../errors.ts';
import { applyType } from '../patch/patch.ts';
import { decodeProtobuf, protobufType } from './protobuf.ts';

/** Limit of a body, the same as the API server's; bytes. */
const maxBody = 3 * 1024 * 1024;

/** Limit of nested arrays and objects. A real API server accepts 10,000; the code here is recursive. */
const maxDepth = 1_000;

/** Reads the body of a request; throws 413 beyond the limit, before all of it is read. */
export async function readBody(req: IncomingMessage): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > maxBody) throw tooLarge(maxBody);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBody) throw tooLarge(maxBody);
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  return req.headers['content-encoding'] === 'gzip' ? unzipped(body) : body;
}

function unzipped(body: Buffer): Buffer {
  try {
    return gunzipSync(body, { maxOutputLength: maxBody });
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
      ? tooLarge(maxBody)
      : badRequest(`the gzip of the body cannot be read: ${(error as Error).message}`);
  }
}

export const mediaType = (req: IncomingMessage) =>
  (req.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';

const objectTypes = ['application/json', 'application/yaml', protobufType];

/** Reading of numbers: those of built-in kinds are small, custom resources hold any. */
export type Numbers = 'Doubles' | 'Exact';

/** Returns the object in a body; throws 415 for other encodings, 400 for a body that cannot be parsed. */
export async function parseObject(bytes: Buffer, type: string, numbers: Numbers = 'Doubles'): Promise<unknown> {
  if (type === 'application/yaml') return parseYaml(bytes, numbers);
  if (type === protobufType) return withoutPrototypeKey(decodeProtobuf(bytes));
  if (type !== '' && type !== 'application/json') throw unsupportedMediaType(objectTypes);
  return parseJson(bytes.toString('utf8'), numbers);
}

/** Returns the patch in a body; an apply is YAML, all others are JSON. */
export const parsePatch = async (bytes: Buffer, type: string, numbers: Numbers = 'Doubles'): Promise<unknown> =>
  type === applyType ? parseYaml(bytes, numbers) : parseJson(bytes.toString('utf8'), numbers);

function parseJson(text: string, numbers: Numbers): unknown {
  let value: unknown;
  try {
    value = numbers === 'Exact' ? parseAsApiServer(text) : JSON.parse(text);
    if (tooDeepAt(value, '', maxDepth) !== undefined) throw new RangeError(`json: exceeded max depth of ${maxDepth}`);
  } catch (error) {
    if (error instanceof RangeError) throw badRequest(error.message);
    throw badRequest(`couldn't get version/kind; json parse error: ${(error as Error).message}`);
  }
  return mayHavePrototypeKey(text) ? withoutPrototypeKey(value) : value;
}

/** Refuses the key `__proto__`, whose value would be lost, or would give access to prototypes of other objects. */
function withoutPrototypeKey<T>(value: T): T {
  if (prototypeKeyAt(value) !== undefined) throw prototypeKeyRefused();
  return value;
}

async function parseYaml(bytes: Buffer, numbers: Numbers): Promise<unknown> {
  // A YAML body of kubectl is nearly always JSON.
  if (bytes[0] === 0x7b) return parseJson(bytes.toString('utf8'), numbers);
  const { parse } = await import('yaml');
  let text: string;
  try {
    const value: unknown = parse(bytes.toString('utf8'), { intAsBigInt: true }) ?? null;
    text = JSON.stringify(value, withIntegers);
  } catch (error) {
    throw badRequest(`error decoding YAML: ${(error as Error).message}`);
  }
  return parseJson(text, numbers);
}

const withIntegers = (_key: string, value: unknown) => (typeof value === 'bigint' ? rawNumber(String(value)) : value);
