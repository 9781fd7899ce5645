import * as z from 'zod';
import { count, digest, dnsLabel, rules } from './schema.ts';

export const blobKind = z.enum(['State', 'Output', 'Log', 'Artifacts']);

export const blobSpec = z
  .strictObject({
    session: dnsLabel().describe('Name of the Session.'),
    sessionUID: z.string().max(64).describe('UID of the Session.'),
    kind: blobKind.describe('Kind of the data that this is a part of.'),
    incarnation: count().describe('Incarnation of the session that produced the data.'),
    seq: z.int().min(0).describe('Sequence number of the data within the incarnation.'),
    part: z.int32().min(1).describe('Number of this part, from 1.'),
    parts: z.int32().min(1).describe('Number of parts.'),
    encoding: z.enum(['Identity', 'Gzip']).describe('Encoding of the joined parts. State is sealed.'),
    digest: digest().describe('sha256 of the joined, decoded content.'),
    bytes: z.int().min(0).describe('Size of the joined, decoded content in bytes.'),
    data: z.string().max(720_000).describe('Content of this part, base64.'),
  })
  .meta(rules({ rule: 'self == oldSelf', message: 'a Blob cannot change' }));
export type BlobSpec = z.infer<typeof blobSpec>;
