import * as z from 'zod';
import { contentTypeOf } from '../../core/artifacts/content-type.ts';
import { defined } from '../../core/defined.ts';
import { ROOTS } from '../../core/enter/hello.ts';
import { encoded } from '../answers/file-answer.ts';
import { enter } from '../inside/enter.ts';
import { Download } from '../inside/files.ts';
import { fileList, insideQuery, pathEntry, sessionParams } from '../openapi/schemas.ts';
import { Problem } from '../problems/problems.ts';
import { type Answer, type Call, type Route, route, type Services } from '../route.ts';

export const filesPath = '/v1/namespaces/{namespace}/sessions/{session}/files/{root}';
/** Limit of a trailer, bytes. */
const TRAILER_BYTES = 8 * 1024;

export const rootParams = sessionParams.extend({ root: z.enum(ROOTS).describe('A folder of the session.') });
export const fileParams = rootParams.extend({
  path: z
    .string()
    .max(4096)
    .regex(/^[^\0]*$/, 'must have no NUL')
    .describe('Path below the root, with its slashes.'),
});
const query = insideQuery.extend({
  as: z
    .enum(['file', 'entry', 'list', 'tar'])
    .optional()
    .describe(
      'file: the content of a file, the default; entry: what is at the path; list: what a folder has; tar: a folder with all below it.',
    ),
});
const headers = z.strictObject({
  Range: z.string().optional().describe('A part of a file: bytes=0-1023 or bytes=1024-.'),
  'If-Range': z
    .string()
    .optional()
    .describe('ETag that the file had: the part comes only of that version, otherwise the whole file as it is now.'),
});

/** Entry of a file system, as the helper describes it. It is checked: the agent's user can choose most of it. */
const fileEntry = z.object({
  name: z.string().transform((name) => name.toWellFormed()),
  type: z.enum(['file', 'folder', 'link', 'other']),
  bytes: z.int().min(0),
  mode: z.string().regex(/^[0-7]{1,8}$/),
  modified: z.string(),
  version: z
    .string()
    .regex(/^[\w.-]{1,128}$/)
    .optional(),
});

type FileCall = Call<
  { namespace: string; session: string; root: (typeof ROOTS)[number]; path?: string },
  z.output<typeof query>
>;

const FACTS = ['Last-Modified', 'Berth-File-Type', 'Berth-File-Mode', 'ETag?'] as const;
const STAT_CODES = ['FileFailed', 'FileNotFound', 'OutsideRoot'] as const;

const common = {
  rights: [
    { verb: 'get' as const, resource: 'sessions' as const, subresource: 'files' as const, nameParam: 'session' },
  ],
  query,
  headers,
  responses: {
    200: {
      description: 'The file, the archive, the list, or what is at the path.',
      schema: 'File' as const,
      also: { 'application/x-tar': 'File' as const, 'application/json': [fileList, pathEntry] },
      headers: [...FACTS, 'Accept-Ranges?', 'Content-Disposition?'] as const,
      trailers: ['Repr-Digest?', 'Berth-File-Problem-Count?', 'Berth-File-Problems?'] as const,
    },
    206: {
      description: 'The part of the file that Range asks for.',
      schema: 'File' as const,
      headers: [...FACTS, 'Accept-Ranges', 'Content-Disposition', 'Content-Range'] as const,
    },
  },
  codes: [...STAT_CODES, 'NotAFile', 'NotAFolder', 'FileChanged', 'RangeNotSatisfiable'] as const,
  holds: () => 'transfers' as const,
};
const DESCRIPTION =
  'The session needs a running pod. Behind an archive come the trailers Repr-Digest, Berth-File-Problem-Count and Berth-File-Problems: what the archive does not have as it was. The connection is cut where the content is not whole. Links that lead out of the root are not followed.';
const head = {
  ...common,
  method: 'HEAD' as const,
  summary: 'What is at a path of a session',
  query: insideQuery,
  description:
    'Content-Length, Last-Modified, Berth-File-Type (file, folder, link, other) and Berth-File-Mode. A file has an ETag, which changes with it.',
  codes: STAT_CODES,
  responses: { 200: { description: 'There is something.', headers: FACTS } },
};

export const fileRoutes: Route[] = [
  route({ ...head, path: filesPath, operationId: 'headRoot', params: rootParams, handle: stat }),
  route({ ...head, path: `${filesPath}/{path}`, operationId: 'headFile', params: fileParams, handle: stat }),
  route({
    ...common,
    method: 'GET',
    path: filesPath,
    operationId: 'getRoot',
    summary: 'A folder of a session, as a list or an archive',
    description: DESCRIPTION,
    params: rootParams,
    handle: get,
  }),
  route({
    ...common,
    method: 'GET',
    path: `${filesPath}/{path}`,
    operationId: 'getFile',
    summary: 'A file of a session; a folder as a list or an archive',
    description: DESCRIPTION,
    params: fileParams,
    handle: get,
  }),
];

async function stat(
  call: Call<FileCall['params'], { uid?: string | undefined; incarnation?: number | undefined }>,
  services: Services,
): Promise<Answer> {
  const { root, path = '' } = call.params;
  const { frames, trace } = await enter(call, services, { want: 'stat', root, path });
  frames.close();
  trace.end();
  const entry = fileEntry.parse(frames.ready);
  return { status: 200, headers: { ...factsOf(entry), 'content-length': String(entry.bytes) } };
}

async function get(call: FileCall, services: Services): Promise<Answer> {
  switch (call.query.as) {
    case 'list':
      return list(call, services);
    case 'entry':
      return entryAt(call, services);
    case 'tar':
      return archive(call, services);
    default:
      return read(call, services);
  }
}

async function entryAt(call: FileCall, services: Services): Promise<Answer> {
  const { root, path = '' } = call.params;
  const { frames, trace } = await enter(call, services, { want: 'stat', root, path });
  frames.close();
  trace.end();
  return { status: 200, body: frames.ready as object, headers: factsOf(fileEntry.parse(frames.ready)) };
}

async function read(call: FileCall, services: Services): Promise<Answer> {
  const asked = rangeOf(call.headers.range);
  const version = call.headers['if-range']?.toString();
  const answer = await readPart(call, services, asked, version);
  // The file is another one by now.
  return answer ?? ((await readPart(call, services)) as Answer);
}

/** Answers with a part of a file, or with all of it. Resolves with undefined where it does not have this version. */
async function readPart(
  call: FileCall,
  services: Services,
  range?: { offset: number; length?: number },
  version?: string,
): Promise<Answer | undefined> {
  const { root, path = '' } = call.params;
  const { frames, trace } = await enter(call, services, { want: 'read', root, path, ...range });
  const entry = fileEntry.parse(frames.ready);
  if (range && version !== undefined && version !== etagOf(entry)) {
    frames.close();
    trace.end();
    return undefined;
  }
  const { offset = 0 } = range ?? {};
  if (range && offset >= entry.bytes) {
    frames.close();
    const problem = new Problem(
      'RangeNotSatisfiable',
      `The file has ${entry.bytes} bytes, and Range begins after them.`,
      {
        headers: { 'content-range': `bytes */${entry.bytes}` },
      },
    );
    trace.end(problem);
    throw problem;
  }
  const length = Math.min(range?.length ?? Number.POSITIVE_INFINITY, entry.bytes - offset);
  const part = range && { 'content-range': `bytes ${offset}-${offset + length - 1}/${entry.bytes}` };
  return {
    status: range ? 206 : 200,
    content: new Download(frames, trace).bytes(),
    headers: {
      ...factsOf(entry),
      ...attachment(entry.name),
      ...part,
      'content-length': String(length),
      'accept-ranges': 'bytes',
    },
  };
}

async function archive(call: FileCall, services: Services): Promise<Answer> {
  const { root, path = '' } = call.params;
  const { frames, trace } = await enter(call, services, { want: 'archive', root, path });
  const entry = fileEntry.parse(frames.ready);
  const download = new Download(frames, trace);
  return {
    status: 200,
    content: download.bytes(),
    headers: { ...factsOf(entry), ...attachment(`${entry.name}.tar`), 'content-type': 'application/x-tar' },
    trailers: {
      'repr-digest': () => `sha-256=:${Buffer.from(download.end?.sha256 ?? '', 'hex').toString('base64')}:`,
      'berth-file-problem-count': () => String(download.end?.problemCount ?? 0),
      'berth-file-problems': () => inHeader(download.end?.problems ?? []),
    },
  };
}

async function list(call: FileCall, services: Services): Promise<Answer> {
  const { root, path = '' } = call.params;
  const { frames, trace } = await enter(call, services, { want: 'list', root, path });
  return {
    status: 200,
    content: asItems(new Download(frames, trace).bytes()),
    headers: { ...factsOf(fileEntry.parse(frames.ready)), 'content-type': 'application/json; charset=utf-8' },
  };
}

/** Turns lines of JSON into a list, piece by piece: a folder may have many entries. */
async function* asItems(lines: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest = Buffer.from('{"items":[');
  let comma = '';
  let line: Buffer[] = [];
  for await (const bytes of lines) {
    const out: Buffer[] = [rest];
    let from = 0;
    for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, from)) {
      out.push(Buffer.from(comma), ...line, bytes.subarray(from, at));
      comma = ',';
      line = [];
      from = at + 1;
    }
    line.push(bytes.subarray(from));
    rest = Buffer.alloc(0);
    yield Buffer.concat(out);
  }
  yield Buffer.concat([rest, Buffer.from(']}\n')]);
}

function factsOf(entry: z.output<typeof fileEntry>): Record<string, string> {
  const { type, mode, modified } = entry;
  return {
    'berth-file-type': type,
    'berth-file-mode': mode,
    'last-modified': new Date(modified).toUTCString(),
    ...defined({ etag: etagOf(entry) }),
  };
}

function etagOf({ type, version }: z.output<typeof fileEntry>): string | undefined {
  return type === 'file' && version !== undefined ? `"${version}"` : undefined;
}

function attachment(name: string): Record<string, string> {
  return {
    'content-type': contentTypeOf(name),
    'content-disposition': `attachment; filename*=UTF-8''${encoded(name)}`,
    // A browser that shows the file runs no script of it and loads nothing for it.
    'content-security-policy': "sandbox; default-src 'none'",
  };
}

/** Returns the part that a Range header asks for. Undefined means the whole file: there is no header, or it has a form that is ignored. */
function rangeOf(text: string | undefined): { offset: number; length?: number } | undefined {
  const [, from, to] = /^bytes=(\d{1,15})-(\d{0,15})$/i.exec(text?.replaceAll(' ', '') ?? '') ?? [];
  if (from === undefined || (to && Number(to) < Number(from))) return undefined;
  return { offset: Number(from), ...(to ? { length: Number(to) - Number(from) + 1 } : {}) };
}

/** JSON in ASCII, as many items as a header may have. */
function inHeader(items: readonly unknown[]): string {
  const text = (count: number) =>
    JSON.stringify(items.slice(0, count)).replaceAll(
      /[^\x20-\x7e]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  let count = items.length;
  while (text(count).length > TRAILER_BYTES) count = Math.floor(count / 2);
  return text(count);
}
