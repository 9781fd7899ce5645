import { parse, TomlError } from 'smol-toml';
import * as z from 'zod';
import { RequirementsError } from '../../core/environments/requirements.ts';

const file = z.looseObject({ hashes: z.record(z.string(), z.string()) });
const lock = z.looseObject({
  'lock-version': z.string(),
  packages: z.array(
    z.looseObject({
      name: z.string(),
      version: z.string().optional(),
      marker: z.string().optional(),
      wheels: z.array(file).default([]),
      sdist: file.optional(),
      vcs: z.unknown().optional(),
      directory: z.unknown().optional(),
      archive: z.unknown().optional(),
    }),
  ),
});

/** Algorithms of digests that a requirement takes. */
const ALGORITHMS: ReadonlySet<string> = new Set(['sha256', 'sha384', 'sha512']);

/**
 * Returns the packages of a lock (PEP 751) as requirements, one line each, with the digests of their files. Throws a
 * RequirementsError that names the line or the package.
 */
export function requirementsOfLock(text: string): string {
  const { packages } = parsed(text);
  return packages.map(requirementOf).join('\n');
}

function parsed(text: string): z.infer<typeof lock> {
  let content: unknown;
  try {
    content = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw new RequirementsError(`line ${error.line}: ${error.message.split('\n')[0]}`);
  }
  const checked = lock.safeParse(content);
  if (checked.success) return checked.data;
  const [{ path, message } = { path: [], message: '' }] = checked.error.issues;
  throw new RequirementsError(`${path.join('.')}: ${message}; it is not a lock as PEP 751 describes`);
}

function requirementOf(locked: z.infer<typeof lock>['packages'][number]): string {
  const { name, version, marker, wheels, sdist } = locked;
  const elsewhere = (['vcs', 'directory', 'archive'] as const).find((source) => locked[source] !== undefined);
  if (elsewhere)
    throw new RequirementsError(`package "${name}" is a ${elsewhere}; only packages of an index are taken`);
  if (version === undefined) throw new RequirementsError(`package "${name}" has no version; lock it to one`);
  if (marker && /\b(extras|dependency_groups)\b/.test(marker)) {
    throw new RequirementsError(`package "${name}" is for an extra or a group; export the lock without it`);
  }
  const named = [...wheels, ...(sdist ? [sdist] : [])].flatMap(({ hashes }) => Object.entries(hashes));
  const digests = named.flatMap(([algorithm, hash]) =>
    ALGORITHMS.has(algorithm) ? [`--hash=${algorithm}:${hash}`] : [],
  );
  if (named.length > 0 && digests.length === 0) {
    const algorithms = [...new Set(named.map(([algorithm]) => algorithm))].join(', ');
    throw new RequirementsError(
      `package "${name}" has digests of ${algorithms} only, which are not checked; lock it with ${[...ALGORITHMS].join(', ')}`,
    );
  }
  return `${name}==${version}${marker ? ` ; ${marker}` : ''} ${digests.join(' ')}`;
}
