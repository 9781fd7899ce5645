import * as z from 'zod';
import { count, digest, dnsLabel, rules } from './schema.ts';

export const blobKind = z.enum(['State', 'Output', 'Log']);

export const blobSpec = z
  .strictObject({
    session: dnsLabel(),
    sessionUID: z.string().max(64),
    kind: blobKind,
    incarnation: count(),
    seq: z.int().min(0),
    part: z.int32().min(1),
    parts: z.int32().min(1),
    encoding: z.enum(['Identity', 'Gzip']).describe('How the joined parts are encoded. State is sealed.'),
    digest: digest().describe('sha256 of the joined, decoded content.'),
    bytes: z.int().min(0).describe('Size of the joined, decoded content.'),
    data: z.string().max(720_000).describe('This part, base64.'),
  })
  .meta(rules({ rule: 'self == oldSelf', message: 'a Blob cannot change' }));
export type BlobSpec = z.infer<typeof blobSpec>;
