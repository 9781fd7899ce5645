import * as z from 'zod';
import { count, digest, dnsLabel, rules } from './schema.ts';

export const blobKind = z.enum(['State', 'Output', 'Log']);

export const blobSpec = z
  .strictObject({
    session: dnsLabel().describe('Name of the Session.'),
    sessionUID: z.string().max(64).describe('Its uid.'),
    kind: blobKind.describe('What it is a part of.'),
    incarnation: count().describe('The incarnation of the session that it comes from.'),
    seq: z.int().min(0).describe('Its number within that incarnation.'),
    part: z.int32().min(1).describe('Which part this is, from 1.'),
    parts: z.int32().min(1).describe('How many parts there are.'),
    encoding: z.enum(['Identity', 'Gzip']).describe('How the joined parts are encoded. State is sealed.'),
    digest: digest().describe('sha256 of the joined, decoded content.'),
    bytes: z.int().min(0).describe('Size of the joined, decoded content.'),
    data: z.string().max(720_000).describe('This part, base64.'),
  })
  .meta(rules({ rule: 'self == oldSelf', message: 'a Blob cannot change' }));
export type BlobSpec = z.infer<typeof blobSpec>;
