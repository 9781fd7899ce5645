import { createHash } from 'node:crypto';
import { digestsOf, packageName } from '../../core/environments/requirements.ts';
import { canonicalJson } from '../../core/json.ts';
import type { Agent, EnvVar } from '../../core/resources/agent.ts';
import type { EnvironmentPackage } from '../../core/resources/environment.ts';
import type { StoredEnvironment, StoredSessionClass } from '../../core/resources/kinds.ts';
import { jsonBytes, MAX_INPUT_BYTES } from '../../core/resources/limits.ts';
import { BUILD_CACHE_DIRECTORY, buildName } from '../../core/resources/names.ts';
import type { SessionSpec } from '../../core/resources/session.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { Installation, Problem } from '../observed/world.ts';
import { imageSettings } from './image.ts';

/** Sessions that build environments: their agent, and the spec of the session for an environment. */

/** The agent of a session that builds: Berth's own program, with the index of the class and its credentials. */
export function builderAgent({ environments }: SessionClassSpec, { builder, imagesArePrograms }: Installation): Agent {
  const { index, credentials, certificates, sourceDistributions } = environments ?? {};
  const env: EnvVar[] = [];
  const give = (name: string, secret: string, key: string) =>
    env.push({ name, valueFrom: { secretKeyRef: { name: secret, key } } });
  // uv takes the credentials of the index that the builder calls "berth" from these.
  if (credentials) {
    give('UV_INDEX_BERTH_USERNAME', credentials.name, 'username');
    give('UV_INDEX_BERTH_PASSWORD', credentials.name, 'password');
  }
  if (certificates) give('UV_INDEX_BERTH_CERTIFICATES', certificates.name, 'ca.crt');
  const options = [
    ...(index ? ['--index', index] : []),
    ...(buildCache(environments, imagesArePrograms) ? ['--cache', BUILD_CACHE_DIRECTORY] : []),
    ...(sourceDistributions ? ['--source-distributions'] : []),
  ];
  return {
    command: ['python3', '-I', builder.script, '--uv', builder.uv, ...options],
    input: 'Stdin',
    result: 'Envelope',
    ...(env.length > 0 ? { env } : {}),
  };
}

/** Returns the claim of the volume with uv's cache, which pods of the class's builds mount; undefined: no cache. */
export function buildCache(
  environments: SessionClassSpec['environments'],
  imagesArePrograms: boolean,
): string | undefined {
  return imagesArePrograms ? undefined : environments?.cache?.claim;
}

/** Problem with a build in an image of its own: that image's programs would get the class's credentials. */
export function exposedCredentials(
  { image }: { image?: string | undefined },
  { environments }: SessionClassSpec,
): Problem | undefined {
  if (image === undefined || !environments?.credentials) return undefined;
  const message =
    'spec.image: the index of the class has credentials, which are given to the class’s image only; leave the image out, or name a class with that image';
  return { reason: 'NotAllowed', message };
}

/** The session that builds an environment. Equal hashes give equal sessions. */
export interface WantedBuild {
  hash: string;
  name: string;
  spec: Pick<SessionSpec, 'class' | 'image' | 'turns' | 'build' | 'input'>;
}

/** Returns the session that has to build the environment, or the problem that prevents a build. */
export function wantedBuild(
  { spec }: StoredEnvironment,
  sessionClass: StoredSessionClass | undefined,
  installation: Installation,
): WantedBuild | Problem {
  if (!sessionClass) {
    return {
      reason: 'ClassNotFound',
      message: `spec.class: there is no SessionClass "${spec.class}"; create it, or create an Environment with one of \`kubectl get sessionclasses\``,
    };
  }
  if (sessionClass.spec.runner === 'None') {
    return {
      reason: 'InvalidSpec',
      message: `spec.class: sessions of class "${spec.class}" have no runner, which environments need; name another class`,
    };
  }
  const exposed = exposedCredentials(spec, sessionClass.spec);
  if (exposed) return exposed;
  const image = imageSettings({ ...(spec.image ? { image: spec.image } : {}) }, sessionClass.spec, installation);
  if ('reason' in image) return image;
  const { python, requirements } = spec;
  const input = { requirements, ...(python ? { python } : {}) };
  const { index, sourceDistributions } = sessionClass.spec.environments ?? {};
  const sources = sourceDistributions ? { sourceDistributions } : {};
  const hash = createHash('sha256')
    .update(canonicalJson({ class: spec.class, image: image.image, index: index ?? null, ...sources, ...input }))
    .digest('hex');
  if (jsonBytes(input) > MAX_INPUT_BYTES) {
    return {
      reason: 'InvalidSpec',
      message: `spec.requirements: has more than ${MAX_INPUT_BYTES} bytes; leave hashes out, or name fewer packages`,
    };
  }
  return {
    hash,
    name: buildName(hash),
    spec: {
      class: spec.class,
      ...(spec.image ? { image: spec.image } : {}),
      turns: 'One',
      build: 'Environment',
      input,
    },
  };
}

/** Returns the same build under the name that follows where a session with this UID, which is another, has its name. */
export function besides(wanted: WantedBuild, uid: string): WantedBuild {
  const name = createHash('sha256').update(canonicalJson({ of: wanted.name, besides: uid }));
  return { ...wanted, name: buildName(name.digest('hex')) };
}

/**
 * Returns the build that installs exactly the packages of an earlier build, whose session was deleted. It is undefined if
 * that build named no digests, or others than the requirements: earlier releases did not compare them. The name differs,
 * because a session's name depends on what it installs.
 */
export function rebuild(
  wanted: WantedBuild,
  packages: readonly EnvironmentPackage[] | undefined,
): WantedBuild | undefined {
  if (!packages || packages.length === 0 || packages.some(({ hashes = [] }) => hashes.length === 0)) return undefined;
  const given = digestsOf((wanted.spec.input as { requirements: string[] }).requirements);
  const isGiven = ({ name, hashes = [] }: EnvironmentPackage) => {
    const digests = given.get(packageName(name));
    return !digests || hashes.every((hash) => digests.has(hash));
  };
  if (!packages.every(isGiven)) return undefined;
  const requirements = packages.map(
    ({ name, version, hashes = [] }) => `${name}==${version} ${hashes.map((hash) => `--hash=${hash}`).join(' ')}`,
  );
  const input = { ...(wanted.spec.input as object), requirements, locked: true };
  if (jsonBytes(input) > MAX_INPUT_BYTES) return undefined;
  const name = buildName(
    createHash('sha256')
      .update(canonicalJson({ of: wanted.hash, input }))
      .digest('hex'),
  );
  return { ...wanted, name, spec: { ...wanted.spec, input } };
}
