import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/json.ts';
import type { Agent, EnvVar } from '../../core/resources/agent.ts';
import type { StoredEnvironment, StoredSessionClass } from '../../core/resources/kinds.ts';
import { buildName } from '../../core/resources/names.ts';
import type { SessionSpec } from '../../core/resources/session.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { Installation, Problem } from '../world/world.ts';
import { imageSettings } from './image.ts';

/** Sessions that build environments: what they run, and what a session of an environment is to be. */

/** The agent of a session that builds: Berth's own program, with the index of the class and its credentials. */
export function builderAgent({ environments }: SessionClassSpec, { builder }: Installation): Agent {
  const { index, credentials, certificates } = environments ?? {};
  const env: EnvVar[] = [];
  const give = (name: string, secret: string, key: string) =>
    env.push({ name, valueFrom: { secretKeyRef: { name: secret, key } } });
  // uv takes the credentials of the index that the builder calls "berth" from these.
  if (credentials) {
    give('UV_INDEX_BERTH_USERNAME', credentials.name, 'username');
    give('UV_INDEX_BERTH_PASSWORD', credentials.name, 'password');
  }
  if (certificates) give('UV_INDEX_BERTH_CERTIFICATES', certificates.name, 'ca.crt');
  return {
    command: ['python3', '-I', builder.script, '--uv', builder.uv, ...(index ? ['--index', index] : [])],
    input: 'Stdin',
    result: 'Envelope',
    ...(env.length > 0 ? { env } : {}),
  };
}

/** The session that builds an environment. Equal hashes give equal sessions. */
export interface WantedBuild {
  hash: string;
  name: string;
  spec: Pick<SessionSpec, 'class' | 'image' | 'turns' | 'build' | 'input'>;
}

/** Returns the session that is to build the environment, or the problem that keeps it from being built. */
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
  const image = imageSettings({ ...(spec.image ? { image: spec.image } : {}) }, sessionClass.spec, installation);
  if ('reason' in image) return image;
  const { python, requirements } = spec;
  const input = { requirements, ...(python ? { python } : {}) };
  const { index } = sessionClass.spec.environments ?? {};
  const hash = createHash('sha256')
    .update(canonicalJson({ class: spec.class, image: image.image, index: index ?? null, ...input }))
    .digest('hex');
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
