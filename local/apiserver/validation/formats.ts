import { isIP, isIPv4, isIPv6 } from 'node:net';
import { parseQuantity } from './quantity.ts';

const unit = '(ns|us|µs|μs|ms|s|m|h)';
const goDuration = new RegExp(`^[-+]?(0|(\\d+(\\.\\d*)?|\\.\\d+)${unit}((\\d+(\\.\\d*)?|\\.\\d+)${unit})*)$`);
const dateTime = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;
const uuid = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

const milliseconds: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Returns the milliseconds of a duration as Go writes it (`1h30m`, `1.5s`); undefined for other text. */
export function parseDuration(text: string): number | undefined {
  if (!goDuration.test(text)) return undefined;
  let total = 0;
  for (const [, amount, name] of text.matchAll(/(\d+\.?\d*|\.\d+)([a-zµμ]+)/g)) {
    total += Number(amount) * (milliseconds[name as string] as number);
  }
  return text.startsWith('-') ? -total : total;
}

/** Pattern of a time with microseconds. All six digits are required: a shorter fraction is refused. */
const microTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(Z|[+-]\d{2}:\d{2})$/;

const isDate = (text: string) => !Number.isNaN(Date.parse(text));

/** Formats that the API server checks on strings; it ignores others. */
const formats: Record<string, (text: string) => boolean> = {
  'date-time': (text) => dateTime.test(text) && isDate(text.replace(' ', 'T')),
  date: (text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && isDate(text),
  duration: (text) => parseDuration(text) !== undefined,
  byte: (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text),
  uuid: (text) => uuid.test(text),
  ipv4: isIPv4,
  ipv6: isIPv6,
  ip: (text) => isIP(text) !== 0,
  cidr: (text) => {
    const [address, bits, rest] = text.split('/');
    const family = isIP(address as string);
    return rest === undefined && family !== 0 && /^\d+$/.test(bits ?? '') && Number(bits) <= (family === 4 ? 32 : 128);
  },
  uri: (text) => URL.canParse(text),
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  // Formats of built-in kinds, where these are types of their own.
  'k8s-micro-time': (text) => microTime.test(text),
  'k8s-quantity': (text) => parseQuantity(text) !== undefined,
  hostname: (text) => /^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$/.test(text),
};

export const matchesFormat = (format: string, text: string): boolean =>
  Object.hasOwn(formats, format) ? (formats[format] as (text: string) => boolean)(text) : true;
