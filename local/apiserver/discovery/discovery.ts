import type { Review } from '../auth/reviews.ts';
import type { Catalogue } from '../registry/catalogue.ts';
import { groupVersion, type ResourceType } from '../registry/types.ts';

interface Subresource {
  name: string;
  kind: string;
  group?: string;
  version?: string;
  verbs: string[];
}

interface Served {
  type: Pick<ResourceType, 'plural' | 'singular' | 'kind' | 'namespaced' | 'shortNames' | 'categories'>;
  verbs: string[];
  subresources: Subresource[];
}

/** Orders versions with the preferred one first: stable before beta before alpha, the higher number first. */
export function compareVersions(a: string, b: string): number {
  const rank = (version: string) => {
    const [, major = '0', stage, minor = '0'] = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version) ?? [];
    return [stage === undefined ? 2 : stage === 'beta' ? 1 : 0, Number(major), Number(minor)];
  };
  const [x, y] = [rank(a), rank(b)];
  for (let i = 0; i < 3; i++) if (x[i] !== y[i]) return (y[i] as number) - (x[i] as number);
  return a < b ? -1 : 1;
}

/** Discovery documents of the served kinds, in the forms that clients ask for. */
export class Discovery {
  readonly #catalogue: Catalogue;
  readonly #reviews: Review[];

  constructor(catalogue: Catalogue, reviews: Review[]) {
    this.#catalogue = catalogue;
    this.#reviews = reviews;
  }

  /** Returns the groups with their versions, the core group (`''`) included. */
  groups(): Map<string, string[]> {
    const groups = new Map<string, Set<string>>();
    const add = (group: string, version: string) => groups.set(group, (groups.get(group) ?? new Set()).add(version));
    for (const type of this.#catalogue.all()) add(type.group, type.version);
    for (const review of this.#reviews) add(review.group, 'v1');
    return new Map([...groups].map(([group, versions]) => [group, [...versions].sort(compareVersions)]));
  }

  served(group: string, version: string): Served[] {
    const types = this.#catalogue.all().filter((type) => type.group === group && type.version === version);
    const reviews = version === 'v1' ? this.#reviews.filter((review) => review.group === group) : [];
    return [
      ...types.map((type) => ({ type, verbs: [...type.verbs].sort(), subresources: subresources(type) })),
      ...reviews.map((review) => ({
        type: { ...review, singular: review.kind.toLowerCase(), shortNames: [], categories: [] },
        verbs: ['create'],
        subresources: [],
      })),
    ];
  }

  /** Returns `/apis` in the form before aggregated discovery. */
  groupList(): object {
    return {
      kind: 'APIGroupList',
      apiVersion: 'v1',
      groups: [...this.groups()]
        .filter(([group]) => group !== '')
        .map(([group, versions]) => apiGroup(group, versions)),
    };
  }

  group(group: string): object | undefined {
    const versions = this.groups().get(group);
    return versions && { kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(group, versions) };
  }

  /** Returns `/api/v1` or `/apis/GROUP/VERSION`; undefined when it is not served. */
  resourceList(group: string, version: string): object | undefined {
    const served = this.served(group, version);
    if (served.length === 0) return undefined;
    return {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: groupVersion({ group, version }),
      resources: served.flatMap(({ type, verbs, subresources: below }) => [
        {
          name: type.plural,
          singularName: type.singular,
          namespaced: type.namespaced,
          kind: type.kind,
          verbs,
          ...(type.shortNames.length > 0 ? { shortNames: type.shortNames } : {}),
          ...(type.categories.length > 0 ? { categories: type.categories } : {}),
        },
        ...below.map(({ name, ...rest }) => ({
          name: `${type.plural}/${name}`,
          singularName: '',
          namespaced: type.namespaced,
          ...rest,
        })),
      ]),
    };
  }

  /** Returns all of `/api` (core) or `/apis` in one document. */
  aggregated(core: boolean): object {
    return {
      kind: 'APIGroupDiscoveryList',
      apiVersion: 'apidiscovery.k8s.io/v2',
      metadata: {},
      items: [...this.groups()]
        .filter(([group]) => (group === '') === core)
        .map(([group, versions]) => ({
          metadata: group === '' ? {} : { name: group },
          versions: versions.map((version) => ({
            version,
            freshness: 'Current',
            resources: this.served(group, version).map((served) => aggregatedResource(served, group, version)),
          })),
        })),
    };
  }
}

function aggregatedResource({ type, verbs, subresources: below }: Served, group: string, version: string): object {
  return {
    resource: type.plural,
    responseKind: { group, version, kind: type.kind },
    scope: type.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: type.singular,
    verbs,
    ...(type.shortNames.length > 0 ? { shortNames: type.shortNames } : {}),
    ...(type.categories.length > 0 ? { categories: type.categories } : {}),
    ...(below.length > 0
      ? {
          subresources: below.map((each) => ({
            subresource: each.name,
            responseKind: { group: each.group ?? group, version: each.version ?? version, kind: each.kind },
            verbs: each.verbs,
          })),
        }
      : {}),
  };
}

function apiGroup(group: string, versions: string[]) {
  const list = versions.map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions: list, preferredVersion: list[0] };
}

const stream = { kind: 'PodAttachOptions', verbs: ['create', 'get'] };

function subresources(type: ResourceType): Subresource[] {
  const below: Subresource[] = [];
  if (type.status) below.push({ name: 'status', kind: type.kind, verbs: ['get', 'patch', 'update'] });
  if (type.scale) {
    below.push({
      name: 'scale',
      kind: 'Scale',
      group: 'autoscaling',
      version: 'v1',
      verbs: ['get', 'patch', 'update'],
    });
  }
  if (type.storage === 'pods') {
    below.push({ name: 'log', kind: 'Pod', verbs: ['get'] });
    below.push({ name: 'attach', ...stream });
    below.push({ name: 'exec', ...stream, kind: 'PodExecOptions' });
  }
  if (type.storage === 'serviceaccounts') {
    below.push({
      name: 'token',
      kind: 'TokenRequest',
      group: 'authentication.k8s.io',
      version: 'v1',
      verbs: ['create'],
    });
  }
  return below;
}
