/** Manifests of a new cluster: the kinds of Berth, the rights of its programs and their limits, classes. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { isAlreadyExists } from '../core/kube/errors.ts';
import type { KubeObject, Resource } from '../core/kube/types.ts';
import type { Store } from './apiserver/types.ts';

type Manifest = KubeObject & { apiVersion: string; kind: string };

/** Kinds in the order of creation. `keep`: people may have changed these objects, and their changes stay. */
const KINDS: { kind: string; plural: string; namespaced?: true; keep?: true }[] = [
  { kind: 'CustomResourceDefinition', plural: 'customresourcedefinitions' },
  { kind: 'Namespace', plural: 'namespaces', keep: true },
  { kind: 'ServiceAccount', plural: 'serviceaccounts', namespaced: true, keep: true },
  { kind: 'ClusterRole', plural: 'clusterroles' },
  { kind: 'ClusterRoleBinding', plural: 'clusterrolebindings' },
  { kind: 'Role', plural: 'roles', namespaced: true },
  { kind: 'RoleBinding', plural: 'rolebindings', namespaced: true },
  // After the rights that the policies ask for.
  { kind: 'ValidatingAdmissionPolicy', plural: 'validatingadmissionpolicies' },
  { kind: 'ValidatingAdmissionPolicyBinding', plural: 'validatingadmissionpolicybindings' },
  { kind: 'SessionClass', plural: 'sessionclasses', keep: true },
];

/** Returns the documents of all YAML files of a folder, in the order of their names. */
function readFolder(folder: string): Manifest[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.yaml'));
  return files.sort().flatMap((file) =>
    parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((document) => {
      const manifest = document.toJS() as Manifest;
      if (!KINDS.some(({ kind }) => kind === manifest?.kind)) {
        throw new Error(`${join(folder, file)}: kind ${manifest?.kind} is not one that is installed here`);
      }
      return manifest;
    }),
  );
}

function resourceOf({ apiVersion }: Manifest, entry: (typeof KINDS)[number]): Resource {
  const [group, version] = apiVersion.includes('/') ? (apiVersion.split('/') as [string, string]) : ['', apiVersion];
  return { group, version, plural: entry.plural, kind: entry.kind, namespaced: entry.namespaced === true };
}

/** Creates or updates everything in the given folders. */
export async function installManifests(store: Store, folders: string[]): Promise<void> {
  const manifests = folders.flatMap(readFolder);
  for (const entry of KINDS) {
    for (const manifest of manifests.filter(({ kind }) => kind === entry.kind)) {
      const resource = resourceOf(manifest, entry);
      try {
        await store.create(resource, manifest);
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
        const { namespace, name } = manifest.metadata;
        // A merge patch without a change writes nothing.
        if (!entry.keep) await store.patch(resource, namespace ? { namespace, name } : { name }, manifest);
      }
    }
  }
}
