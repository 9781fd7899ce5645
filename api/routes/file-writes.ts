/** Files of a running session that are written or deleted. */
import type { IncomingHttpHeaders } from 'node:http';
import * as z from 'zod';
import type { OpenSession } from '../../core/enter/files.ts';
import { type FileEnd, WRITABLE_ROOTS } from '../../core/enter/hello.ts';
import { deleteFile, uploadFile } from '../../core/enter/uploads.ts';
import { enter, type SessionCall, type Trace, tracing } from '../inside/enter.ts';
import { fileWritten, flag, sessionUidQuery } from '../openapi/schemas.ts';
import { Problem } from '../problems/problems.ts';
import { type Answer, type Route, route, type Services } from '../route.ts';
import { fileParams, filesPath } from './files.ts';

const params = fileParams.extend({
  root: z.enum(WRITABLE_ROOTS).describe('A folder of the session that can be written to.'),
});
const common = {
  path: `${filesPath}/{path}`,
  params,
  holds: () => 'transfers' as const,
};

export const fileWriteRoutes: Route[] = [
  route({
    ...common,
    method: 'PUT',
    operationId: 'putFile',
    summary: 'Write a file of a session',
    description:
      'The session needs a running pod. The file gets its name in one step when all of it has come, in place of one that is there; until then, and after an error, the place is as it was. Folders on the way are made. The same request can be sent again.',
    rights: [{ verb: 'update', resource: 'sessions', subresource: 'files', nameParam: 'session' }],
    query: sessionUidQuery.extend({
      mode: z
        .string()
        .regex(/^0?[0-7]{3}$/, 'must be three octal digits, such as 644')
        .optional()
        .describe('Permissions, octal; default 644.'),
    }),
    headers: z.strictObject({
      'Repr-Digest': z
        .string()
        .optional()
        .describe('SHA-256 of the file as sha-256=:BASE64: (RFC 9530). Other bytes are refused.'),
    }),
    takesBytes: true,
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
    ],
    responses: { 200: { description: 'The file has its name.', schema: fileWritten } },
    async handle(call, services) {
      const { query, headers } = call;
      const { root, path } = call.params;
      if (headers['content-range'] !== undefined) {
        throw new Problem('InvalidParameter', 'Content-Range: a file is written as a whole; send all of it.', {
          fields: [{ field: 'Content-Range', message: 'a file is written as a whole' }],
        });
      }
      const length = headers['content-length'] === undefined ? undefined : Number(headers['content-length']);
      const sha256 = digestOf(headers);
      const facts = {
        ...(length !== undefined && { length }),
        ...(sha256 !== undefined && { sha256 }),
        ...(query.mode !== undefined && { mode: Number.parseInt(query.mode, 8) }),
      };
      return inside(call, services, (open, trace) =>
        uploadFile(open, { root, path, ...facts }, counted(call.bytes, trace)),
      );
    },
  }),
  route({
    ...common,
    method: 'DELETE',
    operationId: 'deleteFile',
    summary: 'Delete a file of a session',
    description:
      'A link is deleted itself, not what it leads to; a folder only with recursive=true, with all that is in it.',
    rights: [{ verb: 'delete', resource: 'sessions', subresource: 'files', nameParam: 'session' }],
    query: sessionUidQuery.extend({
      recursive: flag().describe('A folder with all that is in it. ?recursive means true.'),
    }),
    codes: ['FileFailed', 'FileNotFound', 'NotAFile', 'NotAFolder', 'NotWritable', 'OutsideRoot'],
    responses: { 204: { description: 'It is gone.' } },
    async handle(call, services) {
      const { root, path } = call.params;
      await inside(call, services, (open) => deleteFile(open, { root, path, recursive: call.query.recursive }));
      return { status: 204 };
    },
  }),
];

/** Writes or deletes by `use`, and answers with the end that the session reports. */
async function inside(
  call: SessionCall,
  services: Services,
  use: (open: OpenSession, trace: Trace) => Promise<FileEnd>,
): Promise<Answer> {
  let trace: Trace | undefined;
  // The line of the log is that of the connection, which `use` opens once.
  const counts: Trace = { add: (bytes) => trace?.add(bytes), end: (error) => trace?.end(error) };
  const open: OpenSession = async (wish) => {
    const entered = await enter(call, services, wish);
    trace = entered.trace;
    return entered.frames;
  };
  const { bytes, sha256, kept } = await tracing(counts, () => use(open, counts));
  return { status: 200, body: { bytes, sha256, kept } };
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
