/** Files of a running session, read through a connection to it. */
import { createHash } from 'node:crypto';
import { TransportError } from '../kube/errors.ts';
import { EnterError, type FrameStream } from './client.ts';
import type { FileEnd, FileEntry, Root, Wish } from './hello.ts';

/** Opens a connection for what is wanted, and resolves with the answer to its hello. */
export type OpenSession = (wish: Wish) => Promise<FrameStream>;

/** A file, an archive or a list on its way. */
export interface Transfer {
  /** What is at the path. */
  entry: FileEntry;
  /**
   * The bytes; returns what was said at their end. Throws an EnterError for a file that shrank or cannot be read any further, and a
   * TransportError where the connection was lost or the bytes are not those that were sent. Ending it early ends the connection.
   */
  data: AsyncGenerator<Buffer, FileEnd>;
}

type FileWish = Extract<Wish, { root: Root }>;

/** Resolves once the transfer has begun. Rejects as the opening does. */
export async function transfer(open: OpenSession, wish: FileWish): Promise<Transfer> {
  const stream = await open(wish);
  return { entry: stream.ready as FileEntry, data: checked(stream, wish) };
}

async function* checked(stream: FrameStream, { root, path }: FileWish): AsyncGenerator<Buffer, FileEnd> {
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    for await (const { kind, payload } of stream) {
      if (kind === 'data') {
        hash.update(payload);
        bytes += payload.length;
        yield payload;
      } else if (kind === 'end') {
        const end = JSON.parse(payload.toString('utf8')) as FileEnd;
        if (end.bytes === bytes && end.sha256 === hash.digest('hex')) return end;
        throw new TransportError(
          `${root}/${path}: the ${bytes} bytes that came are not the ${end.bytes} that were sent`,
        );
      }
    }
    throw new TransportError(`${root}/${path}: the data ended early`);
  } finally {
    stream.close();
  }
}

/** Describes what is at a path. */
export async function statFile(open: OpenSession, root: Root, path: string): Promise<FileEntry> {
  const { entry, data } = await transfer(open, { want: 'stat', root, path });
  await data.return(undefined as never);
  return entry;
}

/** Yields what is in a folder, in no order. */
export async function* listFolder(open: OpenSession, root: Root, path: string): AsyncGenerator<FileEntry> {
  const { data } = await transfer(open, { want: 'list', root, path });
  let rest: Buffer[] = [];
  for await (const chunk of data) {
    const end = chunk.lastIndexOf(0x0a);
    if (end === -1) {
      rest.push(chunk);
      continue;
    }
    const lines = Buffer.concat([...rest, chunk.subarray(0, end)]).toString('utf8');
    rest = [chunk.subarray(end + 1)];
    for (const line of lines.split('\n')) yield JSON.parse(line) as FileEntry;
  }
}

/** True for the refusal of a folder where a file was asked for, or the other way round. */
export const isOfOtherType = (error: unknown): boolean =>
  error instanceof EnterError && (error.code === 'NotAFile' || error.code === 'NotAFolder');
