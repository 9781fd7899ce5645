import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/json.ts';
import type { ConfigMap } from '../../core/kube/builtin.ts';
import type { AgentFile } from '../../core/resources/agent.ts';
import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import type { CachedSession } from './world.ts';

/** Names of the ConfigMaps that hold files of the session's agent. */
export function namedConfigMaps(
  { spec }: Pick<CachedSession, 'spec'>,
  sessionClass: StoredSessionClass | undefined,
): Set<string> {
  return configMapsIn([...(sessionClass?.spec.agent?.files ?? []), ...(spec.agent?.files ?? [])]);
}

export function configMapsIn(sources: readonly AgentFile[]): Set<string> {
  return new Set(sources.flatMap(({ configMap }) => (configMap === undefined ? [] : [configMap])));
}

/** SHA-256 of what a ConfigMap holds, hex. */
export function filesDigest({ data = {}, binaryData = {} }: Pick<ConfigMap, 'data' | 'binaryData'>): string {
  return createHash('sha256').update(canonicalJson({ data, binaryData })).digest('hex');
}
