import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import type { StoredBlob } from '../../../core/resources/kinds.ts';

/** Joins and checks the parts of one key. The function is synchronous, because an invariant judges one moment. */
export function decoded(part: (number: number) => StoredBlob | undefined): { data: Buffer } | { problem: string } {
  const first = part(1);
  if (!first) return { problem: 'part 1 is not there' };
  const pieces: Buffer[] = [];
  for (let number = 1; number <= first.spec.parts; number++) {
    const blob = part(number);
    if (!blob) return { problem: `part ${number} of ${first.spec.parts} is not there` };
    pieces.push(Buffer.from(blob.spec.data, 'base64'));
  }
  const joined = Buffer.concat(pieces);
  const data = first.spec.encoding === 'Gzip' ? gunzipSync(joined) : joined;
  const digest = createHash('sha256').update(data).digest('hex');
  return digest === first.spec.digest ? { data } : { problem: 'its digest is not that of its parts' };
}
