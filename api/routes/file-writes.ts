/** Files of a running session that are written or deleted. */
import type { IncomingHttpHeaders } from 'node:http';
import * as z from 'zod';
import { defined } from '../../core/defined.ts';
import type { OpenSession } from '../../core/enter/files.ts';
import { type FileEnd, WRITABLE_ROOTS } from '../../core/enter/hello.ts';
import { deleteFile, uploadFile, uploadFolder } from '../../core/enter/uploads.ts';
import { enter, type SessionCall, type Trace, tracing } from '../inside/enter.ts';
import { tarEntries } from '../inside/tar-entries.ts';
import { fileWritten, flag, insideQuery } from '../openapi/schemas.ts';
import { Problem } from '../problems/problems.ts';
import { type Answer, type Call, type Route, route, type Services } from '../route.ts';
import { fileParams, filesPath, rootParams } from './files.ts';

const params = fileParams.extend({
  root: z.enum(WRITABLE_ROOTS).describe('A folder of the session that can be written to.'),
});
const writableRoot = rootParams.extend({ root: params.shape.root });
const putQuery = insideQuery.extend({
  as: z
    .enum(['file', 'tar'])
    .default('file')
    .describe('tar: the body is a tar, which is put into the folder at the path file by file.'),
  mode: z
    .string()
    .regex(/^0?[0-7]{3}$/, 'must be three octal digits, such as 644')
    .optional()
    .describe('Permissions of a file, octal; default 644.'),
  modified: z.iso.datetime().optional().describe('Time of the last change of a file, RFC 3339 in UTC; default: now.'),
  bytes: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe('Bytes of all files of a tar: what there is no room for is refused before anything is written.'),
});
type PutCall = Call<z.output<typeof writableRoot> & { path?: string }, z.output<typeof putQuery>>;

const put = {
  method: 'PUT' as const,
  rights: [
    { verb: 'update' as const, resource: 'sessions' as const, subresource: 'files' as const, nameParam: 'session' },
  ],
  query: putQuery,
  headers: z.strictObject({
    'Repr-Digest': z
      .string()
      .optional()
      .describe('SHA-256 of the file as sha-256=:BASE64: (RFC 9530). Other bytes are refused.'),
  }),
  takesBytes: true as const,
  codes: [
    'Busy',
    'ContentMismatch',
    'FileFailed',
    'FileNotFound',
    'NoSpace',
    'NotAFile',
    'NotAFolder',
    'NotWritable',
    'OutsideRoot',
    'StateTooLarge',
  ] as const,
  responses: { 200: { description: 'The file has its name, or all files of the tar have.', schema: fileWritten } },
  holds: () => 'transfers' as const,
  handle: write,
};

export const fileWriteRoutes: Route[] = [
  route({
    ...put,
    path: filesPath,
    operationId: 'putRoot',
    summary: 'Put a folder into a root of a session',
    description: 'As for a folder below it, with as=tar.',
    params: writableRoot,
  }),
  route({
    ...put,
    path: `${filesPath}/{path}`,
    operationId: 'putFile',
    summary: 'Write a file of a session, or put a folder',
    description:
      'The session needs a running pod. The file gets its name in one step when all of it has come, in place of one that is there; until then, and after an error, the place is as it was. Folders on the way are made. The same request can be sent again. With as=tar each file of the tar is written like that; after an error those that came before stay.',
    params,
  }),
  route({
    method: 'DELETE',
    path: `${filesPath}/{path}`,
    operationId: 'deleteFile',
    summary: 'Delete a file of a session',
    description:
      'A link is deleted itself, not what it leads to; a folder only with recursive=true, with all that is in it. The header Berth-File-Kept says how long it stays deleted, as `kept` of a PUT does.',
    params,
    holds: () => 'transfers' as const,
    rights: [{ verb: 'delete', resource: 'sessions', subresource: 'files', nameParam: 'session' }],
    query: insideQuery.extend({
      recursive: flag().describe('A folder with all that is in it. ?recursive means true.'),
    }),
    codes: ['FileFailed', 'FileNotFound', 'NotAFile', 'NotAFolder', 'NotWritable', 'OutsideRoot'],
    responses: { 204: { description: 'It is gone.', headers: ['Berth-File-Kept'] } },
    async handle(call, services) {
      const { root, path } = call.params;
      const { recursive } = call.query;
      const { kept } = await inside(call, services, (open) => deleteFile(open, { root, path, recursive }));
      return { status: 204, headers: { ...(kept && { 'berth-file-kept': kept }) } };
    },
  }),
];

async function write(call: PutCall, services: Services): Promise<Answer> {
  const { query, headers } = call;
  const { root, path = '' } = call.params;
  if (headers['content-range'] !== undefined) {
    throw new Problem('InvalidParameter', 'Content-Range: a file is written as a whole; send all of it.', {
      fields: [{ field: 'Content-Range', message: 'a file is written as a whole' }],
    });
  }
  const end = await inside(call, services, (open, trace) => {
    const content = counted(call.bytes, trace);
    if (query.as === 'tar') {
      return uploadFolder(open, { root, path, ...defined({ length: query.bytes }) }, tarEntries(content));
    }
    const length = headers['content-length'] === undefined ? undefined : Number(headers['content-length']);
    const mode = query.mode === undefined ? undefined : Number.parseInt(query.mode, 8);
    const modified = query.modified === undefined ? undefined : Date.parse(query.modified);
    const facts = defined({ length, mode, modified, sha256: digestOf(headers) });
    return uploadFile(open, { root, path, ...facts }, content);
  });
  const { bytes, sha256, kept } = end;
  return { status: 200, body: { bytes, sha256, kept, durable: kept === 'Volume' } };
}

/** Writes or deletes by `use`; resolves with the end that the session reports. */
async function inside(
  call: SessionCall,
  services: Services,
  use: (open: OpenSession, trace: Trace) => Promise<FileEnd>,
): Promise<FileEnd> {
  let trace: Trace | undefined;
  // The line of the log is that of the connection, which `use` opens once.
  const counts: Trace = { add: (bytes) => trace?.add(bytes), end: (error) => trace?.end(error) };
  const open: OpenSession = async (wish) => {
    const entered = await enter(call, services, wish);
    trace = entered.trace;
    return entered.frames;
  };
  return tracing(counts, () => use(open, counts));
}

async function* counted(content: AsyncIterable<Buffer>, trace: Trace): AsyncGenerator<Buffer> {
  for await (const piece of content) {
    trace.add(piece.length);
    yield piece;
  }
}

/** The SHA-256 that the client tells, hex. Throws a Problem for a header that has none in its right form. */
function digestOf(headers: IncomingHttpHeaders): string | undefined {
  const text = headers['repr-digest']?.toString();
  if (text === undefined) return undefined;
  const [, base64] = /(?:^|,)\s*sha-256=:([A-Za-z0-9+/]{43}=):/.exec(text) ?? [];
  if (base64) return Buffer.from(base64, 'base64').toString('hex');
  const message = 'has no sha-256=:BASE64:';
  throw new Problem('InvalidParameter', `Repr-Digest ${message}; send the SHA-256 of the file, or no such header.`, {
    fields: [{ field: 'Repr-Digest', message }],
  });
}
