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
   * The bytes; returns what was said at their end. Throws an EnterError for a file that shrank or cannot be read any further, and for
   * bytes that are not those that were sent; a TransportError where the connection was lost. Ending it early ends the connection.
   */
  data: AsyncGenerator<Buffer, FileEnd>;
}

/** The part of a file that begins at a position, of a file that was looked at before. */
export interface Rest {
  of: FileEntry;
  offset: number;
}

/** The file was replaced or changed after its first part had been read. */
export class FileReplacedError extends EnterError {
  /** `what`: root and path. */
  constructor(what: string) {
    super({ code: 'FileChanged', message: `${what} was written to while it was read; try again` });
  }
}

type FileWish = Extract<Wish, { root: Root }>;

/** Resolves once the transfer has begun. Rejects as the opening does. */
export async function transfer(open: OpenSession, wish: FileWish): Promise<Transfer> {
  const stream = await open(wish);
  return { entry: stream.ready as FileEntry, data: endedBy(checked(stream, wish), () => stream.close()) };
}

/** Has an early end of the generator call `end`, also where nothing was asked of it before: its own code does not run then. */
export function endedBy<T, R>(data: AsyncGenerator<T, R>, end: () => void): AsyncGenerator<T, R> {
  const own = data.return.bind(data);
  data.return = (value) => {
    end();
    return own(value);
  };
  return data;
}

/** Begins with the rest of a file. Rejects with a FileReplacedError where it is not the same, or that cannot be told. */
export async function transferRest(
  open: OpenSession,
  { root, path }: { root: Root; path: string },
  { of, offset }: Rest,
): Promise<Transfer> {
  const { entry, data } = await transfer(open, { want: 'read', root, path, offset });
  if (of.version !== undefined && of.version === entry.version) return { entry, data };
  await data.return(undefined as never);
  throw new FileReplacedError(`${root}/${path}`);
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
        // No other attempt would bring other bytes in place of those that were taken.
        const message = `${root}/${path}: the ${bytes} bytes that came are not the ${end.bytes} that were sent; try again`;
        throw new EnterError({ code: 'ContentMismatch', message });
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
