/** Environment and command line of a container, from its spec and the objects it names. */

import { isNotFound } from '../../core/kube/errors.ts';
import { configMaps, secrets } from '../../core/kube/resources.ts';
import type { Store } from '../apiserver/types.ts';
import type { Container, EnvVar, KeySelector, Pod } from './types.ts';

/**
 * The container cannot be created with its present configuration; `message` is for its waiting state. Retried later.
 */
export class ContainerConfigError extends Error {
  readonly code = 'CreateContainerConfigError';
}

/** Replaces `$(NAME)` by the variable's value; `$$(NAME)` is the text `$(NAME)`, an unknown name stays as it is. */
export function expand(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(/\$\$|\$\(([^()]*)\)/g, (match, name: string | undefined) => {
    if (match === '$$') return '$';
    return name !== undefined && Object.hasOwn(variables, name) ? variables[name]! : match;
  });
}

function fieldValue(pod: Pod, nodeName: string, path: string): string {
  const { metadata } = pod;
  const keyed = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path);
  if (keyed) return metadata[keyed[1] as 'labels' | 'annotations']?.[keyed[2]!] ?? '';
  switch (path) {
    case 'metadata.name':
      return metadata.name;
    case 'metadata.namespace':
      return metadata.namespace;
    case 'metadata.uid':
      return metadata.uid;
    case 'spec.nodeName':
      return nodeName;
    case 'spec.serviceAccountName':
      return pod.spec.serviceAccountName ?? 'default';
    case 'status.podIP':
    case 'status.hostIP':
      return '127.0.0.1';
    default:
      throw new ContainerConfigError(`unsupported fieldPath: ${path}`);
  }
}

/** Reads Secrets and ConfigMaps for one container, each once. */
class Sources {
  readonly #store: Store;
  readonly #namespace: string;
  readonly #read = new Map<string, Promise<Record<string, string> | undefined>>();

  constructor(store: Store, namespace: string) {
    this.#store = store;
    this.#namespace = namespace;
  }

  /** Returns all keys with their plain values; undefined when there is no such object. */
  data(kind: 'secret' | 'configmap', name: string): Promise<Record<string, string> | undefined> {
    const key = `${kind}/${name}`;
    const known = this.#read.get(key);
    if (known) return known;
    const reading = this.#load(kind, name);
    this.#read.set(key, reading);
    return reading;
  }

  async all(
    kind: 'secret' | 'configmap',
    source: { name: string; optional?: boolean },
  ): Promise<Record<string, string>> {
    const data = await this.data(kind, source.name);
    if (!data && !source.optional) throw new ContainerConfigError(`${kind} "${source.name}" not found`);
    return data ?? {};
  }

  /** Returns undefined if the key is missing and optional. */
  async value(kind: 'secret' | 'configmap', selector: KeySelector): Promise<string | undefined> {
    const data = await this.all(kind, selector);
    if (Object.hasOwn(data, selector.key)) return data[selector.key]!;
    if (selector.optional) return undefined;
    const written = kind === 'secret' ? 'Secret' : 'ConfigMap';
    throw new ContainerConfigError(
      `couldn't find key ${selector.key} in ${written} ${this.#namespace}/${selector.name}`,
    );
  }

  async #load(kind: 'secret' | 'configmap', name: string): Promise<Record<string, string> | undefined> {
    let data: Record<string, string> | undefined;
    try {
      const ref = { namespace: this.#namespace, name };
      data = (await (kind === 'secret' ? this.#store.get(secrets, ref) : this.#store.get(configMaps, ref))).data;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
    const decode = (value: string) => (kind === 'secret' ? Buffer.from(value, 'base64').toString('utf8') : value);
    return Object.fromEntries(Object.entries(data ?? {}).map(([key, value]) => [key, decode(value)]));
  }
}

async function variableValue(
  variable: EnvVar,
  sources: Sources,
  pod: Pod,
  nodeName: string,
  known: Record<string, string>,
): Promise<string | undefined> {
  const from = variable.valueFrom;
  if (!from) return expand(variable.value ?? '', known);
  if (from.secretKeyRef) return sources.value('secret', from.secretKeyRef);
  if (from.configMapKeyRef) return sources.value('configmap', from.configMapKeyRef);
  if (from.fieldRef) return fieldValue(pod, nodeName, from.fieldRef.fieldPath);
  throw new ContainerConfigError(`env ${variable.name}: the embedded cluster has no resourceFieldRef`);
}

/**
 * Returns the variables of `envFrom` and `env`, on top of `base`, which they may refer to and override. Rejects with a
 * `ContainerConfigError` when something they need is missing.
 */
export async function containerEnvironment(
  store: Store,
  pod: Pod,
  container: Container,
  nodeName: string,
  base: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const sources = new Sources(store, pod.metadata.namespace);
  const variables: Record<string, string> = { ...base };
  for (const { prefix = '', secretRef, configMapRef } of container.envFrom ?? []) {
    const data: Record<string, string> = {};
    if (configMapRef) Object.assign(data, await sources.all('configmap', configMapRef));
    if (secretRef) Object.assign(data, await sources.all('secret', secretRef));
    for (const [key, value] of Object.entries(data)) variables[prefix + key] = value;
  }
  for (const variable of container.env ?? []) {
    const value = await variableValue(variable, sources, pod, nodeName, variables);
    if (value !== undefined) variables[variable.name] = value;
  }
  return variables;
}

/** Returns the command line: the container's command, or the image's entry point, then the container's args. */
export function commandLine(
  container: Container,
  entrypoint: readonly string[],
  variables: Readonly<Record<string, string>>,
): string[] {
  const command = container.command?.length ? container.command.map((word) => expand(word, variables)) : entrypoint;
  return [...command, ...(container.args ?? []).map((word) => expand(word, variables))];
}
