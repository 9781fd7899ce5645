import * as z from 'zod';
import { MAX_REQUIREMENT_LENGTH, MAX_REQUIREMENTS, REQUIREMENT } from '../environments/requirements.ts';
import {
  conditions,
  count,
  digest,
  dnsLabel,
  dnsSubdomain,
  observedGeneration,
  rules,
  stateRef,
  timestamp,
} from './schema.ts';

export const environmentSpec = z
  .strictObject({
    class: dnsSubdomain()
      .default('python')
      .describe('The SessionClass that it is built with, and whose sessions use it. Default: the one named python.'),
    image: z
      .string()
      .min(1)
      .max(512)
      .optional()
      .describe('Image whose Python it is built for, as far as the class lets it be set. Default: the class’s.'),
    python: z
      .string()
      .max(16)
      .regex(/^3(\.[0-9]{1,3}){0,2}$/, 'must be a version of Python 3, for example 3.12')
      .optional()
      .describe('Version that the image’s Python has to have, for example 3.12. Default: any.'),
    requirements: z
      .array(
        z
          .string()
          .min(1)
          .max(MAX_REQUIREMENT_LENGTH)
          .regex(
            REQUIREMENT,
            'must be of the form name[extra] ==1.2; marker --hash=sha256:…; options, paths, URLs and variables are not taken',
          ),
      )
      .max(MAX_REQUIREMENTS)
      .default([])
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('Packages, one requirement each, as in a requirements file: httpx[http2] >=0.28. Default: none.'),
  })
  .meta(rules({ rule: 'self == oldSelf', message: 'an Environment cannot change; create another one' }));

const environmentPhase = z.enum(['Pending', 'Building', 'Ready', 'Failed']);

/** Limit of the digests of one package: the builder names only those of files that fit its Python. */
export const MAX_HASHES = 16;

const environmentPackages = z
  .array(
    z.strictObject({
      name: z.string().max(256).describe('Its name.'),
      version: z.string().max(128).describe('Its version.'),
      hashes: z
        .array(z.string().max(160))
        .max(MAX_HASHES)
        .optional()
        .meta({ 'x-kubernetes-list-type': 'atomic' })
        .describe('Digests of its files that fit the image’s Python.'),
    }),
  )
  .max(1024)
  .meta({ 'x-kubernetes-list-type': 'atomic' });

/** Archive of a built environment: the state of the session that built it, sealed with that session's key. */
export const environmentArchive = stateRef.extend({
  session: dnsLabel().describe('Name of the session that built it.'),
  sessionUID: z.string().max(64).describe('Its uid.'),
});

export const environmentStatus = z.strictObject({
  phase: environmentPhase
    .optional()
    .describe('Pending: no session has needed it yet, or its build waits. Building, Ready, Failed.'),
  conditions: conditions(),
  observedGeneration: observedGeneration(),
  hash: digest().optional().describe('Of what was asked, the class and the image. Equal ones share one archive.'),
  build: dnsLabel().optional().describe('The session that builds it or has built it.'),
  archive: environmentArchive.optional().describe('Where it is kept.'),
  pythonVersion: z.string().max(32).optional().describe('The Python that it is for.'),
  uvVersion: z.string().max(32).optional().describe('The uv that has built it.'),
  packages: environmentPackages
    .optional()
    .describe('Packages of the last build. Another build of the same environment installs exactly these.'),
  bytes: z.int().min(0).optional().describe('Its size on disk in bytes.'),
  attempts: count().optional().describe('Builds that failed for a cause that may pass, one after the other.'),
  retryAt: timestamp().optional().describe('When the next of them begins, if a session needs it then.'),
});

export type EnvironmentSpec = z.infer<typeof environmentSpec>;
export type EnvironmentStatus = z.infer<typeof environmentStatus>;
export type EnvironmentPackage = z.infer<typeof environmentPackages>[number];
export type EnvironmentArchive = z.infer<typeof environmentArchive>;
