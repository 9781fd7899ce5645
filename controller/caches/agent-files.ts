import type { ConfigMap } from '../../core/kube/builtin.ts';
import { Informer } from '../../core/kube/informer.ts';
import { configMaps } from '../../core/kube/resources.ts';
import { LABEL_AGENT_FILES } from '../../core/resources/names.ts';
import { namedConfigMaps } from '../observed/agent-files.ts';
import type { CachedSession } from '../observed/world.ts';
import type { ClassCache } from './classes.ts';
import type { SessionCache } from './sessions.ts';
import { type CachedFiles, slimFiles } from './slim.ts';
import { type CacheTools, isKnown } from './tools.ts';

export interface AgentFilesLister {
  /** Reports whether ConfigMaps with agent files are known: read once, and not forbidden. */
  knowsAgentFiles(namespace: string): boolean;
  /** Digest of what a ConfigMap with agent files holds; undefined where there is none. */
  agentFiles(namespace: string, configMap: string): string | undefined;
  /** Reads all ConfigMaps with agent files anew: a live read that found none says nothing that a cache can take. */
  relistAgentFiles(signal: AbortSignal): Promise<void>;
}

/** Nothing is known of ConfigMaps with agent files where they may not be read. */
export const NO_AGENT_FILES: AgentFilesLister = {
  knowsAgentFiles: () => false,
  agentFiles: () => undefined,
  relistAgentFiles: async () => {},
};

/** The cache of ConfigMaps with agent files. A change is passed to the sessions that use one, and to those of a class that does. */
export function agentFilesCache(tools: CacheTools, sessions: SessionCache, classes: ClassCache) {
  const filesFor = (session: CachedSession) => namedConfigMaps(session, classes.lister.class(session.spec.class));
  const informer = new Informer<ConfigMap, CachedFiles>({
    ...tools,
    // A session waits until it is known whether the ConfigMaps that it names are there. No event comes for one that is not.
    onKnown: () => sessions.tellOf((session) => filesFor(session).size > 0),
    resource: configMaps,
    labelSelector: `${LABEL_AGENT_FILES}=true`,
    transform: slimFiles,
    // A ConfigMap that was read live may lack the label, by which the watch selects.
    keep: ({ metadata }) => metadata.labels?.[LABEL_AGENT_FILES] === 'true',
    unreadable: ({ metadata }) => ({ metadata, digest: '' }),
  });
  const onFiles = ({ metadata: { namespace, name } }: CachedFiles) =>
    sessions.tellOf((session) => session.metadata.namespace === namespace && filesFor(session).has(name));
  informer.addHandler({ add: onFiles, update: onFiles, delete: onFiles });
  const lister: AgentFilesLister = {
    knowsAgentFiles: (namespace) => isKnown(informer, namespace),
    agentFiles: (namespace, configMap) => informer.get(namespace, configMap)?.digest,
    relistAgentFiles: (signal) => informer.relist(signal),
  };
  return { informer, lister };
}
