import { badRequest, unsupportedMediaType } from '../errors.ts';
import { type Json, timestamp } from '../object.ts';
import { kinds, messages } from './protobuf-messages.ts';

export const protobufType = 'application/vnd.kubernetes.protobuf';

/** Prefix of a body in the protobuf encoding of Kubernetes. */
const magic = Buffer.from('k8s\0');

/**
 * Decodes the bodies of `kubectl create …` and `kubectl auth …`, whose clients insist on protobuf and do not try JSON
 * when it is refused. Answers are JSON, which they accept. Throws 415 for unknown kinds, 400 for bytes that cannot be
 * read.
 */
export function decodeProtobuf(bytes: Buffer): Json {
  try {
    if (!bytes.subarray(0, magic.length).equals(magic)) throw new RangeError('the prefix is missing');
    const envelope = readMessage(bytes.subarray(magic.length), 'Unknown');
    const { apiVersion, kind } = (envelope.typeMeta ?? {}) as { apiVersion?: string; kind?: string };
    const message = kinds.find((known) => known === kind);
    if (message === undefined) throw unsupportedMediaType(['application/json', 'application/yaml']);
    return { apiVersion, kind, ...readMessage((envelope.raw as Buffer) ?? Buffer.alloc(0), message) };
  } catch (error) {
    if (error instanceof RangeError) throw badRequest(`the protobuf of the body cannot be read: ${error.message}`);
    throw error;
  }
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new RangeError('it ends within a number');
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asIntN(64, value);
    }
    throw new RangeError('a number is too long');
  }

  chunk(length: number): Buffer {
    if (length < 0 || this.#at + length > this.#bytes.length) throw new RangeError('it ends within a field');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** The value of a field by its wire type: a number or bytes. */
  value(wireType: number): bigint | Buffer {
    switch (wireType) {
      case 0:
        return this.varint();
      case 1:
        return this.chunk(8);
      case 2:
        return this.chunk(Number(this.varint()));
      case 5:
        return this.chunk(4);
      default:
        throw new RangeError(`wire type ${wireType} is not known`);
    }
  }
}

function readMessage(bytes: Buffer, name: string): Json {
  const fields = messages[name] ?? {};
  const result: Json = {};
  const reader = new Reader(bytes);
  while (!reader.done) {
    const tag = Number(reader.varint());
    const value = reader.value(tag & 7);
    const field = fields[tag >> 3];
    if (!field) continue;
    const [key, type] = field;
    const list = /^\[\](.*)$/.exec(type)?.[1];
    if (list !== undefined) {
      const items = (result[key] ?? []) as unknown[];
      items.push(convert(value, list));
      result[key] = items;
      continue;
    }
    const map = /^map:(.*)$/.exec(type)?.[1];
    if (map !== undefined) {
      const entry = readEntry(value, map);
      result[key] = { ...(result[key] as Json | undefined), [entry.key]: entry.value };
      continue;
    }
    const converted = convert(value, type);
    if (!isEmpty(converted)) result[key] = converted;
  }
  return result;
}

/** Reports an empty value: fields without a value are sent too, and count as absent. */
const isEmpty = (value: unknown) =>
  value === '' ||
  value === null ||
  (typeof value === 'object' && !Buffer.isBuffer(value) && Object.keys(value).length === 0);

function convert(value: bigint | Buffer, type: string): unknown {
  if (typeof value === 'bigint') return type === 'bool' ? value !== 0n : Number(value);
  switch (type) {
    case 'string':
      return value.toString('utf8');
    case 'bytes':
      return value.toString('base64');
    case 'raw':
      return value;
    case 'time': {
      const { seconds } = readMessage(value, 'Time');
      return seconds === undefined ? null : timestamp((seconds as number) * 1000);
    }
    default:
      return readMessage(value, type);
  }
}

function readEntry(value: bigint | Buffer, type: string): { key: string; value: unknown } {
  const reader = new Reader(value as Buffer);
  const entry = { key: '', value: '' as unknown };
  while (!reader.done) {
    const tag = Number(reader.varint());
    const part = reader.value(tag & 7);
    if (tag >> 3 === 1) entry.key = (part as Buffer).toString('utf8');
    else entry.value = convert(part, type);
  }
  return entry;
}
