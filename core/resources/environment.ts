import * as z from 'zod';
import { MAX_REQUIREMENT_LENGTH, MAX_REQUIREMENTS, REQUIREMENT } from '../environments/requirements.ts';
import {
  conditions,
  count,
  digest,
  dnsLabel,
  dnsSubdomain,
  imageReference,
  observedGeneration,
  phaseReason,
  rules,
  stateRef,
  timestamp,
} from './schema.ts';

export const environmentSpec = z
  .strictObject({
    class: dnsSubdomain()
      .default('python')
      .describe(
        'SessionClass that builds the environment, and whose sessions may use it. Default: the SessionClass named python.',
      ),
    image: imageReference()
      .optional()
      .describe(
        'Image whose Python the environment is built for, if the class allows it to be set. Default: the class’s image.',
      ),
    python: z
      .string()
      .max(16)
      .regex(/^3(\.[0-9]{1,3}){0,2}$/, 'must be a version of Python 3, for example 3.12')
      .optional()
      .describe('Required version of the image’s Python, for example 3.12. Default: any.'),
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
      .describe('Packages, one requirement per item, as in a requirements file: httpx[http2] >=0.28. Default: none.'),
  })
  .meta(rules({ rule: 'self == oldSelf', message: 'an Environment cannot change; create another one' }));

const environmentPhase = z.enum(['Pending', 'Building', 'Ready', 'Failed']);

/** Limit of the digests of one package: the builder names only those of files that fit its Python. */
export const MAX_HASHES = 16;

const environmentPackages = z
  .array(
    z.strictObject({
      name: z.string().max(256).describe('Name of the package.'),
      version: z.string().max(128).describe('Installed version.'),
      hashes: z
        .array(z.string().max(160))
        .max(MAX_HASHES)
        .optional()
        .meta({ 'x-kubernetes-list-type': 'atomic' })
        .describe('Digests of the package’s files that fit the image’s Python.'),
    }),
  )
  .max(1024)
  .meta({ 'x-kubernetes-list-type': 'atomic' });

/** Archive of a built environment: the state of the session that built it, sealed with that session's key. */
export const environmentArchive = stateRef.extend({
  session: dnsLabel().describe('Name of the session that built the archive.'),
  sessionUID: z.string().max(64).describe('Uid of that session.'),
});

export const environmentStatus = z.strictObject({
  phase: environmentPhase
    .optional()
    .describe(
      'Pending: no session has needed the environment yet, or its build waits. Building: a session builds it. Ready: it can be used. Failed: it cannot be built.',
    ),
  reason: phaseReason(),
  conditions: conditions(),
  observedGeneration: observedGeneration(),
  hash: digest()
    .optional()
    .describe(
      'Digest of requirements, Python, class, image and index. Environments with equal hashes share one archive.',
    ),
  build: dnsLabel().optional().describe('Session that builds or has built the environment.'),
  archive: environmentArchive.optional().describe('Location of the packed environment in the store.'),
  pythonVersion: z.string().max(32).optional().describe('Version of the Python that the environment was built for.'),
  uvVersion: z.string().max(32).optional().describe('Version of uv that built the environment.'),
  packages: environmentPackages
    .optional()
    .describe('Packages of the last build. Another build of the same environment installs exactly these.'),
  bytes: z.int().min(0).optional().describe('Size of the installed environment in bytes.'),
  attempts: count().optional().describe('Number of consecutive builds that failed for a temporary cause.'),
  retryAt: timestamp().optional().describe('Time of the next build, if a session needs the environment then.'),
});

export type EnvironmentSpec = z.infer<typeof environmentSpec>;
export type EnvironmentStatus = z.infer<typeof environmentStatus>;
export type EnvironmentPackage = z.infer<typeof environmentPackages>[number];
export type EnvironmentArchive = z.infer<typeof environmentArchive>;
