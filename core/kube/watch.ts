import { parseExact } from '../json.ts';
import { ApiError, TransportError } from './errors.ts';
import { toStatus } from './status.ts';
import type { KubeObject, Stored, WatchEvent } from './types.ts';

/** Limit of one line. etcd takes objects of 1.5 MiB, which stay well below this as JSON with their managed fields. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/**
 * Decodes the events of a watch from the bytes of its answer: one JSON document per line, cut anywhere, also within a
 * character. Throws the ApiError that an ERROR event carries (410 when the position has expired), and a TransportError
 * for anything that is not a watch event.
 */
export async function* decodeWatch<T extends KubeObject>(
  chunks: AsyncIterable<Buffer>,
  exactNumbers = false,
): AsyncGenerator<WatchEvent<T>> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      const piece = chunk.subarray(from, end);
      const line = restBytes === 0 ? piece : Buffer.concat([...rest, piece]);
      rest = [];
      restBytes = 0;
      from = end + 1;
      const event = decodeLine<T>(line, exactNumbers);
      if (event !== undefined) yield event;
    }
    if (from < chunk.length) {
      rest.push(chunk.subarray(from));
      restBytes += chunk.length - from;
      if (restBytes > MAX_LINE_BYTES)
        throw new TransportError(`watch: an event is larger than ${MAX_LINE_BYTES} bytes`);
    }
  }
  // The server ends every event with a newline. The rest is torn, and comes again after a reconnect.
}

function decodeLine<T extends KubeObject>(line: Buffer, exactNumbers: boolean): WatchEvent<T> | undefined {
  if (line.length === 0) return undefined;
  let event: { type?: string; object?: unknown };
  try {
    const text = line.toString('utf8');
    event = (exactNumbers ? parseExact(text) : JSON.parse(text)) as typeof event;
  } catch (error) {
    throw new TransportError('watch: the server sent a line that is no JSON', { cause: error });
  }
  switch (event.type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type: event.type, object: event.object as Stored<T> };
    case 'BOOKMARK':
      return { type: 'BOOKMARK', resourceVersion: (event.object as Stored<T>).metadata.resourceVersion };
    case 'ERROR':
      throw new ApiError(toStatus(event.object, 500, 'watch'));
    default:
      throw new TransportError(`watch: the server sent an event of unknown type ${JSON.stringify(event.type)}`);
  }
}
