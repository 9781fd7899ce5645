/** Files of a running session that are written or deleted through a connection to it. */
import { createHash, type Hash } from 'node:crypto';
import { TransportError } from '../kube/errors.ts';
import type { FrameStream } from './client.ts';
import type { OpenSession } from './files.ts';
import { DATA_BYTES, fieldsPayload } from './frames.ts';
import type { FileEnd, Root, WriteFacts } from './hello.ts';

/** What is put into a folder. */
export interface FolderEntry {
  type: 'file' | 'folder' | 'link';
  /** Path below the folder, with `/`. */
  path: string;
  /** Permissions, 0 to 0o777. */
  mode: number;
  /** ms since 1970. */
  modified: number;
  /** Bytes of a file; exactly these have to come. */
  length?: number;
  content?: AsyncIterable<Buffer>;
  /** Target of a link. */
  target?: string;
}

/**
 * Writes one file, which appears as a whole or not at all. Resolves with the session's answer once the file has its name. Rejects as the opening
 * does, with an EnterError where the session does not take it, or with whatever the content throws.
 */
export function uploadFile(
  open: OpenSession,
  { root, path, ...facts }: { root: Root; path: string } & WriteFacts,
  content: AsyncIterable<Buffer>,
): Promise<FileEnd> {
  return sent(open, { want: 'write', root, path, ...facts }, async (stream, hash) => {
    await sendContent(stream, hash, content);
    await stream.send('end', Buffer.from(hash.copy().digest('hex')));
  });
}

/** Puts what comes into a folder, each file as a whole. Folders come before what is in them. Resolves and rejects as `uploadFile` does. */
export function uploadFolder(
  open: OpenSession,
  { root, path, length }: { root: Root; path: string; length?: number },
  entries: AsyncIterable<FolderEntry>,
): Promise<FileEnd> {
  return sent(open, { want: 'fill', root, path, ...(length !== undefined && { length }) }, async (stream, hash) => {
    for await (const entry of entries) {
      const { type, mode, modified } = entry;
      const rest = type === 'link' ? (entry.target ?? '') : (entry.length ?? 0);
      await stream.send('entry', fieldsPayload([type, entry.path, mode, Math.floor(modified), rest]));
      if (entry.content) await sendContent(stream, hash, entry.content);
    }
    await stream.send('end');
  });
}

/** Deletes what is at a path; a folder only with `recursive`. */
export function deleteFile(
  open: OpenSession,
  target: { root: Root; path: string; recursive?: boolean },
): Promise<FileEnd> {
  return sent(open, { want: 'delete', ...target }, async () => {});
}

async function sent(
  open: OpenSession,
  wish: Parameters<OpenSession>[0],
  send: (stream: FrameStream, hash: Hash) => Promise<void>,
): Promise<FileEnd> {
  const stream = await open(wish);
  const hash = createHash('sha256');
  const answer = endOf(stream);
  answer.catch(() => {});
  try {
    try {
      await send(stream, hash);
    } catch (error) {
      // A refusal ends the connection, so what is sent then fails as well.
      if (error instanceof TransportError) await answer;
      throw error;
    }
    const end = await answer;
    if (end.sha256 !== hash.digest('hex')) {
      throw new TransportError('the session did not get the bytes that were sent');
    }
    return end;
  } finally {
    stream.close();
  }
}

async function endOf(stream: FrameStream): Promise<FileEnd> {
  for await (const { kind, payload } of stream) {
    if (kind === 'end') return JSON.parse(payload.toString('utf8')) as FileEnd;
  }
  throw new TransportError('the connection ended before the session had said that it has the file');
}

async function sendContent(stream: FrameStream, hash: Hash, content: AsyncIterable<Buffer>): Promise<void> {
  for await (const chunk of content) {
    for (let at = 0; at < chunk.length; at += DATA_BYTES) {
      const piece = chunk.subarray(at, at + DATA_BYTES);
      hash.update(piece);
      await stream.send('data', piece);
    }
  }
}
