import { ifThere } from '../../core/kube/errors.ts';
import { customResourceDefinitions } from '../../core/kube/resources.ts';
import { VERSION } from '../../core/program/version.ts';
import { customResourceDefinition, kinds } from '../../core/resources/crd.ts';
import { API_GROUP } from '../../core/resources/names.ts';
import type { KubeCluster } from '../cluster/cluster.ts';
import { error, type Found, needing, ok, some, warning } from './finding.ts';
import type { Installed } from './installation.ts';

interface Version {
  name: string;
  served?: boolean;
  schema?: { openAPIV3Schema?: unknown };
  selectableFields?: unknown;
}

interface Definition {
  metadata?: { annotations?: Record<string, string> };
  spec: { versions: Version[] };
  status?: { conditions?: { type: string; status: string; message?: string }[] };
}

const ACT =
  'install the chart berth-crds of the installed release: helm upgrade berth-crds charts/berth-crds (docs/install.md#upgrading)';

/** Annotation of a CRD with the release that it is of, which the chart reads, too. */
const ANNOTATION_RELEASE = 'berth.dev/release';

/** Compares the CRDs of the cluster with those of this release. */
export async function crdsFound(
  installed: readonly Installed[],
  { api }: KubeCluster,
  signal: AbortSignal,
): Promise<Found[]> {
  const read = kinds.map(async (kind) => {
    const name = `${kind.plural}.${API_GROUP}`;
    const found = await needing(
      'get customresourcedefinitions.apiextensions.k8s.io',
      ifThere(api.get(customResourceDefinitions, { name }, { signal })),
    );
    return { name, found: found as unknown as Definition | undefined, expected: customResourceDefinition(kind) };
  });
  const all = await Promise.all(read);
  const missing = all.filter(({ found }) => !found).map(({ name }) => name);
  if (missing.length === all.length) return [error('Berth has no CRDs in this cluster', ACT)];
  const others = installed.length > 0 && installed.every(({ release }) => release !== VERSION);
  const problems = all.flatMap(({ name, found, expected }): Found[] => {
    if (!found) return [];
    const established = found.status?.conditions?.find(({ type }) => type === 'Established');
    if (established && established.status !== 'True') {
      return [error(`${name} is not established: ${established.message ?? ''}`, `kubectl describe crd ${name}`)];
    }
    if (others || isNewer(releaseOf(found))) return [];
    const differ = differences(name, expected as unknown as Definition, found);
    if (differ.length === 0) return [];
    return [error(`${name} is not that of release ${VERSION}: ${some(differ)}`, ACT)];
  });
  const gone = missing.length > 0 ? [error(`${some(missing)}: missing`, ACT)] : [];
  if (gone.length + problems.length > 0) return [...gone, ...problems];
  if (others) {
    return [
      warning(
        `the CRDs are there; they were not compared, as this program is of another release`,
        'see the check release',
      ),
    ];
  }
  const newer = all.map(({ found }) => releaseOf(found)).find(isNewer);
  if (newer) return [ok(`all ${all.length} CRDs are there; they are of release ${newer}, which ${VERSION} can use`)];
  return [ok(`all ${all.length} CRDs are there and those of release ${VERSION}`)];
}

const releaseOf = (found: Definition | undefined) => found?.metadata?.annotations?.[ANNOTATION_RELEASE];

/** True for a release after this one: after a rollback of the programs the CRDs stay as they are. */
function isNewer(release = ''): boolean {
  const parts = (version: string) => version.split(/[-+]/)[0]?.split('.').map(Number) ?? [];
  const own = parts(VERSION);
  for (const [index, part] of parts(release).entries()) {
    const difference = part - (own[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}

function differences(name: string, expected: Definition, found: Definition): string[] {
  return expected.spec.versions.flatMap((version) => {
    const present = found.spec.versions.find((each) => each.name === version.name);
    if (!present?.served) return [`version ${version.name} is not served`];
    const schemas = compare(version.schema?.openAPIV3Schema, present.schema?.openAPIV3Schema, '');
    const selected = isSame(version.selectableFields ?? [], present.selectableFields ?? [])
      ? []
      : [`selectable fields of ${name}`];
    return [...schemas, ...selected];
  });
}

const SCHEMAS = ['items', 'additionalProperties'] as const;

type Schema = Record<string, unknown> & { properties?: Record<string, Schema> };

/** Returns where two schemas differ, as paths of fields with what is so there. The API server leaves out what is empty. */
function compare(expected: unknown, found: unknown, path: string): string[] {
  if (!isObject(expected) || !isObject(found)) return isSame(expected, found) ? [] : [`${path || 'schema'} differs`];
  const [one, other] = [expected as Schema, found as Schema];
  const [ofOne, ofOther] = [one.properties ?? {}, other.properties ?? {}];
  const fields = [...new Set([...Object.keys(ofOne), ...Object.keys(ofOther)])].flatMap((field) => {
    const at = path ? `${path}.${field}` : field;
    if (!(field in ofOther)) return [`${at} is missing`];
    return field in ofOne ? compare(ofOne[field], ofOther[field], at) : [`${at} is not of this release`];
  });
  const below = SCHEMAS.flatMap((key) => {
    if (!isObject(one[key]) && !isObject(other[key])) return [];
    return compare(one[key], other[key], `${path}[]`);
  });
  const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  const own = keys.filter((key) => key !== 'properties' && !(isObject(one[key]) && SCHEMAS.includes(key as never)));
  const differ = own.filter((key) => !isSame(one[key], other[key]));
  return [...fields, ...below, ...(differ.length > 0 ? [`${path || 'schema'}: ${differ.join(', ')}`] : [])];
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isEmpty = (value: unknown) =>
  value === undefined || value === false || value === '' || (Array.isArray(value) && value.length === 0);

/** True for equal values, whatever the order of their fields; what is empty equals what is absent. */
function isSame(one: unknown, other: unknown): boolean {
  if (isEmpty(one) && isEmpty(other)) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((each, index) => isSame(each, other[index]));
  }
  if (!isObject(one) || !isObject(other)) return one === other;
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...keys].every((key) => isSame(one[key as never], other[key as never]));
}
