import { type KeyObject, randomBytes, sign } from 'node:crypto';

/**
 * Makes a self-signed X.509 certificate for 127.0.0.1, ::1 and localhost. kubectl sends tokens over TLS only, and Node
 * reads certificates but makes none, so the few DER structures that are needed are written here.
 */
export function certificate(options: {
  privateKey: KeyObject;
  publicKey: KeyObject;
  name: string;
  /** Milliseconds since the epoch. */
  from: number;
  to: number;
}): string {
  const name = sequence(set(sequence(oid(2, 5, 4, 3), utf8(options.name))));
  const toBeSigned = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ecdsaWithSha256,
    name,
    sequence(time(options.from), time(options.to)),
    name,
    options.publicKey.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...extensions)),
  );
  const signature = sign('sha256', toBeSigned, options.privateKey);
  const der = sequence(toBeSigned, ecdsaWithSha256, bits(signature));
  const lines = der.toString('base64').match(/.{1,64}/g) as string[];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

const tlv = (tag: number, ...contents: Buffer[]) => {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), length(content.length), content]);
};

function length(n: number): Buffer {
  if (n < 128) return Buffer.from([n]);
  const bytes = n < 256 ? [n] : [n >> 8, n & 255];
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

const sequence = (...contents: Buffer[]) => tlv(0x30, ...contents);
const set = (...contents: Buffer[]) => tlv(0x31, ...contents);
const integer = (bytes: Buffer) => tlv(0x02, bytes);
const utf8 = (text: string) => tlv(0x0c, Buffer.from(text));
const octets = (bytes: Buffer) => tlv(0x04, bytes);
const boolean = (value: boolean) => tlv(0x01, Buffer.from([value ? 0xff : 0]));
const bits = (bytes: Buffer, unused = 0) => tlv(0x03, Buffer.from([unused]), bytes);
const explicit = (tag: number, content: Buffer) => tlv(0xa0 | tag, content);

function oid(first: number, second: number, ...rest: number[]): Buffer {
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const septets = [arc & 127];
    for (let left = arc >> 7; left > 0; left >>= 7) septets.unshift((left & 127) | 128);
    bytes.push(...septets);
  }
  return tlv(0x06, Buffer.from(bytes));
}

/** Encodes a time: UTCTime to 2049, GeneralizedTime after, as RFC 5280 says. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replaceAll(/[-:T]/g, '').slice(0, 14);
  const year = Number(digits.slice(0, 4));
  return year < 2050 ? tlv(0x17, Buffer.from(`${digits.slice(2)}Z`)) : tlv(0x18, Buffer.from(`${digits}Z`));
}

const ecdsaWithSha256 = sequence(oid(1, 2, 840, 10045, 4, 3, 2));

const extension = (id: Buffer, critical: boolean, value: Buffer) =>
  sequence(id, ...(critical ? [boolean(true)] : []), octets(value));

const dnsName = (name: string) => tlv(0x82, Buffer.from(name));
const ipAddress = (...bytes: number[]) => tlv(0x87, Buffer.from(bytes));

const extensions = [
  extension(oid(2, 5, 29, 19), true, sequence(boolean(true))),
  // digitalSignature and keyCertSign
  extension(oid(2, 5, 29, 15), true, bits(Buffer.from([0b10000100]), 2)),
  // serverAuth
  extension(oid(2, 5, 29, 37), false, sequence(oid(1, 3, 6, 1, 5, 5, 7, 3, 1))),
  extension(
    oid(2, 5, 29, 17),
    false,
    sequence(dnsName('localhost'), ipAddress(127, 0, 0, 1), ipAddress(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)),
  ),
];
