/** Headers of answers in the document. */
import type { Json } from './json-schema.ts';

const HEADERS = {
  'Berth-Version': 'Release of the server.',
  'X-Request-Id': 'Id of the request, as the server’s log has it.',
  Location: 'Path of the object.',
  ETag: 'SHA-256 of the content, for If-None-Match and If-Range.',
  'Repr-Digest': 'SHA-256 of the whole content as sha-256=:BASE64: (RFC 9530).',
  'Accept-Ranges': 'bytes: a request may ask for a part, with Range.',
  'Content-Range': 'Place of the part in the content, and the size of the content.',
  'Content-Disposition': 'Name of the file.',
  'Last-Modified': 'Time of the last change.',
  'Berth-File-Type': 'file, folder, link or other.',
  'Berth-File-Mode': 'Permissions, octal.',
  'Berth-File-Kept': 'How long the change stays: State, Volume or Pod, as `kept` of a PUT.',
  'Berth-File-Problem-Count': 'Number of entries that the archive does not have as they were.',
  'Berth-File-Problems': 'The first of these entries: JSON in ASCII, a list of FileProblem.',
  'Berth-Output-Next': 'Position behind the output that there was when the request came.',
  'Retry-After': 'Seconds until the request is worth another try.',
  'WWW-Authenticate': 'Bearer: the request needs a token.',
  Upgrade: 'websocket: the page is one.',
} as const;

type Name = keyof typeof HEADERS;
/** A header that every such answer has or, with `?`, that some have. */
export type AnswerHeader = Name | `${Name}?`;

const NUMBERS: readonly string[] = ['Retry-After', 'Berth-Output-Next', 'Berth-File-Problem-Count'] satisfies Name[];

const keyOf = (header: AnswerHeader) => header.replace('?', '.optional');

/** Returns the headers of an answer, each as a reference. */
export function headersOf(names: readonly AnswerHeader[]): Json {
  return Object.fromEntries(
    names.map((header) => [header.replace('?', ''), { $ref: `#/components/headers/${keyOf(header)}` }]),
  );
}

/** Returns the headers that answers refer to, by the name of the reference. */
export function namedHeaders(): Json {
  const named = Object.entries(HEADERS).flatMap(([name, description]) => {
    const schema = NUMBERS.includes(name) ? { type: 'integer', minimum: 0 } : { type: 'string' };
    const header = { description, schema };
    return [
      [name, { ...header, required: true }],
      [`${name}.optional`, header],
    ];
  });
  return Object.fromEntries(named);
}
