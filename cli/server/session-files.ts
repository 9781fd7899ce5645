import { createHash, type Hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { anySignal } from '../../core/abort.ts';
import { EnterError } from '../../core/enter/client.ts';
import { endedBy, FileReplacedError, type Rest } from '../../core/enter/files.ts';
import { type FileEnd, type FileEntry, type Kept, rootProblem } from '../../core/enter/hello.ts';
import type { FolderEntry } from '../../core/enter/uploads.ts';
import { TransportError } from '../../core/kube/errors.ts';
import type { Inside, Place } from '../cluster/inside.ts';
import type { ServerClient, StreamedAnswer } from './client.ts';
import { asRefusal } from './errors.ts';

/** Time without a byte of a file after which the connection counts as lost, milliseconds. */
const SILENCE_MS = 60_000;

type Files = Pick<Inside, 'stat' | 'list' | 'read' | 'archive' | 'write' | 'fill' | 'remove'>;

/** Files of a session's present pod, below `path` of a server. `pod`: query that names the pod. */
export function sessionFiles(
  client: ServerClient,
  path: string,
  { pod, signal }: { pod: Record<string, string | number | undefined>; signal: AbortSignal },
): Files {
  const at = ({ root, path: below }: Place) =>
    below === '' ? `${path}/${root}` : `${path}/${root}/${below.split('/').map(encodeURIComponent).join('/')}`;
  /** `leave` ends an answer that is not read to its end. */
  const open = async (place: Place, as: 'entry' | 'list' | 'tar' | 'file', headers: Record<string, string> = {}) => {
    const left = new AbortController();
    const both = anySignal(signal, left.signal);
    const request = { query: { ...pod, as }, headers, signal: both, idleTimeoutMs: SILENCE_MS };
    const answer = await asRefusal(() => client.open(at(place), request));
    return { answer, leave: () => left.abort(new Error('the reader has left')) };
  };
  const json = async (place: Place, as: 'entry' | 'list'): Promise<unknown> => {
    const pieces: Buffer[] = [];
    for await (const piece of (await open(place, as)).answer.body) pieces.push(piece);
    return JSON.parse(Buffer.concat(pieces).toString('utf8'));
  };
  const stat = async (place: Place) => (await json(place, 'entry')) as FileEntry;
  /** Puts content; `hash` gets the bytes of its files on the way. */
  const put = async (
    place: Place,
    { query, headers, hash }: { query: Record<string, string | number>; headers: Record<string, string>; hash: Hash },
    content: AsyncIterable<Buffer>,
  ): Promise<FileEnd> => {
    refuseReadOnly(place);
    const request = { query: { ...pod, ...query }, headers, content, signal };
    const end = (await asRefusal(() => client.upload(at(place), request))) as FileEnd;
    if (end.sha256 === hash.digest('hex')) return end;
    throw new TransportError('the session did not get the bytes that were sent');
  };
  const restOf = async (place: Place, { of, offset }: Rest): Promise<AsyncGenerator<Buffer, FileEnd>> => {
    const { version, bytes } = of;
    const replaced = new FileReplacedError(`${place.root}/${place.path}`);
    if (version === undefined) throw replaced;
    if (offset >= bytes) {
      // No range begins behind the last byte.
      if ((await stat(place)).version !== version) throw replaced;
      return fileData({ body: noBytes() }, of, () => stat(place));
    }
    const headers = { range: `bytes=${offset}-`, 'if-range': `"${version}"` };
    const { answer, leave } = await open(place, 'file', headers);
    if (answer.status === 206)
      return endedBy(
        fileData(answer, of, () => stat(place)),
        leave,
      );
    leave();
    throw replaced;
  };
  return {
    stat,
    list: async (place) => ((await json(place, 'list')) as { items: FileEntry[] }).items,
    async read(place, rest) {
      if (rest) return { entry: rest.of, data: await restOf(place, rest) };
      const { answer, leave } = await open(place, 'file');
      const entry = entryOf(place, answer);
      return {
        entry,
        data: endedBy(
          fileData(answer, entry, () => stat(place)),
          leave,
        ),
      };
    },
    async archive(place) {
      const { answer, leave } = await open(place, 'tar');
      return { entry: entryOf(place, answer), data: endedBy(archiveData(answer), leave) };
    },
    write(place, { length, mode = 0o644, modified }, content) {
      const query = {
        mode: mode.toString(8).padStart(3, '0'),
        ...(modified !== undefined && { modified: new Date(modified).toISOString() }),
      };
      const hash = createHash('sha256');
      return put(place, { query, headers: { 'content-length': String(length) }, hash }, hashing(hash, content));
    },
    fill(place, length, entries) {
      const query = { as: 'tar', bytes: length };
      const hash = createHash('sha256');
      return put(place, { query, headers: { 'content-type': 'application/x-tar' }, hash }, archiveOf(entries, hash));
    },
    async remove(place, recursive) {
      refuseReadOnly(place);
      if (place.path === '') {
        throw new EnterError({
          code: 'Invalid',
          message: `path has to name something in ${place.root}`,
          field: 'path',
        });
      }
      const query = { ...pod, recursive };
      const { headers } = await asRefusal(() => client.answer('DELETE', at(place), { query, signal }));
      const kept = headers.get('berth-file-kept') as Kept | null;
      return { bytes: 0, sha256: '', ...(kept && { kept }) };
    },
  };
}

/** Refuses a root that is only read as the session does: the server's schema has the others alone. */
function refuseReadOnly({ root }: Place): void {
  const problem = rootProblem(root);
  if (problem) throw new EnterError(problem);
}

function entryOf({ root, path }: Place, { headers }: StreamedAnswer): FileEntry {
  const text = (name: string) => headers.get(name) ?? '';
  const [, version] = /^"(.+)"$/.exec(text('etag')) ?? [];
  return {
    name: path.split('/').filter(Boolean).at(-1) ?? root,
    type: text('berth-file-type') as FileEntry['type'],
    bytes: Number(text('content-length')),
    mode: text('berth-file-mode'),
    modified: new Date(text('last-modified')).toISOString(),
    ...(version && { version }),
  };
}

/** Yields a file. The server cuts one that is not whole; what came behind its end is seen by another look at it. */
async function* fileData(
  { body }: Pick<StreamedAnswer, 'body'>,
  { bytes: expected }: FileEntry,
  stat: () => Promise<FileEntry>,
): AsyncGenerator<Buffer, FileEnd> {
  const hash = createHash('sha256');
  yield* hashing(hash, body);
  const now = await stat();
  return { bytes: expected, sha256: hash.digest('hex'), ...(now.bytes > expected && { changed: 'Grew' as const }) };
}

async function* noBytes(): AsyncGenerator<Buffer> {}

async function* archiveData({ body, trailers }: StreamedAnswer): AsyncGenerator<Buffer, FileEnd> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of hashing(hash, body)) {
    bytes += piece.length;
    yield piece;
  }
  const sha256 = hash.digest('hex');
  const { 'repr-digest': digest, 'berth-file-problem-count': count, 'berth-file-problems': list } = trailers();
  if (digest !== `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`) {
    throw new TransportError(`the ${bytes} bytes of the archive that came are not those that were sent`);
  }
  return { bytes, sha256, problemCount: Number(count ?? 0), problems: JSON.parse(String(list ?? '[]')) };
}

async function* hashing(hash: Hash, content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of content) {
    hash.update(piece);
    yield piece;
  }
}

/** Yields a tar of the entries; `hash` gets the bytes of the files. */
async function* archiveOf(entries: AsyncIterable<FolderEntry>, hash: Hash): AsyncGenerator<Buffer> {
  const { pack } = await import('tar-stream');
  const tar = pack();
  const adding = (async () => {
    for await (const { type, path, mode, modified, length = 0, content, target } of entries) {
      // The header itself has whole seconds.
      const header = {
        name: path,
        mode,
        mtime: new Date(modified),
        pax: { mtime: (Math.floor(modified) / 1000).toFixed(3) },
      };
      if (content) await pipeline(Readable.from(hashing(hash, content)), tar.entry({ ...header, size: length }));
      else if (type === 'link') tar.entry({ ...header, type: 'symlink', linkname: target ?? '' });
      else tar.entry({ ...header, type: 'directory' });
    }
    tar.finalize();
  })();
  adding.catch((error) => tar.destroy(error));
  yield* tar as AsyncIterable<Buffer>;
  await adding;
}
