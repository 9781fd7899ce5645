import { ifThere, isForbidden } from '../../core/kube/errors.ts';
import { eachPage } from '../../core/kube/pages.ts';
import { pods, secrets } from '../../core/kube/resources.ts';
import type { KubeObject, Resource, Stored } from '../../core/kube/types.ts';
import { environments, sessions, turns } from '../../core/resources/kinds.ts';
import { LABEL_SESSION } from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { lastChange } from '../cluster/secret-metadata.ts';
import { some } from '../doctor/finding.ts';
import { type Installed, leaseOf, masterKeyOf } from '../doctor/installation.ts';

/** A master key, and what needs it; objects by `namespace/name`. */
export interface KeyUse {
  id: string;
  current: boolean;
  /** Sessions whose stored state it opens. */
  states: string[];
  /** Environments whose archive it opens. */
  environments: string[];
  /** Pods of sessions that may be bound under it. */
  pods: string[];
  /** True where nothing needs it, as far as the caller could see. */
  mayGo: boolean;
  why: string;
}

/** The master keys of an installation. */
export interface Keys {
  namespace: string;
  name: string;
  keys: KeyUse[];
  /** Sentences on what the caller could not see, or has to do first. */
  notes: string[];
}

const PAGE_SIZE = 500;

/** Objects that need a master key, by its id. */
interface Needs {
  states: Map<string, Set<string>>;
  environments: Map<string, Set<string>>;
  /** Pods that began before the present leader, whose key nothing names. */
  olderPods: string[];
  newerPods: string[];
}

/** Reads which master keys an installation has and what needs each. Rejects with an ApiError where the caller may not list sessions. */
export async function keysOf(installed: Installed, cluster: KubeCluster, signal: AbortSignal): Promise<Keys> {
  const { namespace, name } = installed;
  const secretName = masterKeyOf(installed);
  const notes: string[] = [];
  const [secret, lease] = await Promise.all([
    ifThere(cluster.api.get(secrets, { namespace, name: secretName }, { signal })).catch((error) => {
      if (!isForbidden(error)) throw error;
      notes.push(`you may not get Secret ${namespace}/${secretName}, so which key is current is not known`);
      return undefined;
    }),
    leaseOf(installed, cluster, signal),
  ]);
  const leadsSince = Date.parse(lease?.spec?.acquireTime ?? '');
  if (secret && Date.parse(lastChange(secret.metadata)) > leadsSince) {
    notes.push(`the Secret was changed after the controller began to lead, so it does not know of it yet; restart it`);
  }
  const needs = await read(cluster, leadsSince, signal);
  const current = Buffer.from(secret?.data?.current ?? '', 'base64').toString();
  const inSecret = Object.keys(secret?.data ?? {}).filter((id) => id !== 'current');
  const ids = new Set([...inSecret, ...needs.states.keys(), ...needs.environments.keys()]);
  const only = ids.size === 1;
  const keys = [...ids].sort().map((id): KeyUse => {
    const isCurrent = id === current;
    const use = {
      ...{ id, current: isCurrent },
      states: [...(needs.states.get(id) ?? [])].sort(),
      environments: [...(needs.environments.get(id) ?? [])].sort(),
      pods: (only ? [...needs.olderPods, ...needs.newerPods] : isCurrent ? needs.newerPods : needs.olderPods).sort(),
    };
    const why = reason(use, { isMissing: secret !== undefined && !inSecret.includes(id), isUnsure: notes.length > 0 });
    return { ...use, mayGo: why === undefined, why: why ?? 'nothing needs it' };
  });
  return { namespace, name, keys, notes };
}

type Used = Omit<KeyUse, 'mayGo' | 'why'>;

/** Says why the key may not go; undefined where it may. */
function reason(
  { current, states, environments, pods }: Used,
  { isMissing, isUnsure }: { isMissing: boolean; isUnsure: boolean },
): string | undefined {
  if (current) return 'it is the current one';
  const parts = [
    ...(states.length > 0 ? [`states of ${some(states)}`] : []),
    ...(environments.length > 0 ? [`environments ${some(environments)}`] : []),
    ...(pods.length > 0 ? [`pods ${some(pods)}`] : []),
  ];
  if (parts.length > 0) return `${isMissing ? 'it is not in the Secret, and needed for ' : ''}${parts.join('; ')}`;
  return isUnsure ? 'see the note' : undefined;
}

async function read({ api }: KubeCluster, leadsSince: number, signal: AbortSignal): Promise<Needs> {
  const needs: Needs = { states: new Map(), environments: new Map(), olderPods: [], newerPods: [] };
  const note = (of: Map<string, Set<string>>, id: string | undefined, object: string) => {
    if (id !== undefined) of.set(id, (of.get(id) ?? new Set()).add(object));
  };
  const each = async <T extends KubeObject>(
    resource: Resource<T>,
    take: (object: Stored<T>, name: string) => void,
    labelSelector?: string,
  ) => {
    const options = { limit: PAGE_SIZE, signal, ...(labelSelector ? { labelSelector } : {}) };
    await eachPage(api, resource, options, ({ items }) => {
      for (const object of items) take(object, `${object.metadata.namespace}/${object.metadata.name}`);
    });
  };
  await each(sessions, ({ status }, name) => {
    note(needs.states, status?.state?.keyId, name);
    note(needs.environments, status?.environment?.archive.keyId, name);
  });
  // A turn that goes on may have a state that its session does not have yet.
  await each(turns, ({ metadata: { namespace }, spec, status }) => {
    if (!isTerminal(status?.phase)) note(needs.states, status?.state?.keyId, `${namespace}/${spec.session}`);
  });
  await each(environments, ({ status }, name) => note(needs.environments, status?.archive?.keyId, name));
  await each(
    pods,
    ({ metadata: { creationTimestamp } }, name) => {
      const isNewer = Date.parse(creationTimestamp) > leadsSince;
      (isNewer ? needs.newerPods : needs.olderPods).push(name);
    },
    LABEL_SESSION,
  );
  return needs;
}
