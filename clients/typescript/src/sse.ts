import { NotBerth } from './errors.ts';

/** A server-sent event as its lines say. */
export interface RawEvent {
  /** Empty where the event has none. */
  id: string;
  type: string;
  data: string;
}

/** Limit of an event, characters. */
const MAX_EVENT = 16 * 1024 * 1024;

/**
 * Reads server-sent events, however the chunks are cut; comments are left out. An event that the end of the stream cuts is dropped, as the
 * standard says.
 */
export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<RawEvent, void, undefined> {
  const decoder = new TextDecoder();
  let pieces: string[] = [];
  let size = 0;
  let event = blank();
  for await (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true });
    let from = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      pieces.push(text.slice(from, end));
      const line = pieces.join('').replace(/\r$/, '');
      pieces = [];
      from = end + 1;
      if (line !== '') {
        take(event, line);
        continue;
      }
      if (event.data.length > 0) yield { id: event.id, type: event.type, data: event.data.join('\n') };
      event = blank();
      size = 0;
    }
    pieces.push(text.slice(from));
    size += text.length;
    if (size > MAX_EVENT) throw new NotBerth(`an event of the stream is larger than ${MAX_EVENT} characters`);
  }
}

const blank = () => ({ id: '', type: '', data: [] as string[] });

function take(event: ReturnType<typeof blank>, line: string): void {
  const [, field = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
  if (field === 'id') event.id = value;
  else if (field === 'event') event.type = value;
  else if (field === 'data') event.data.push(value);
}
