import type { Column as TableColumn } from '../../../core/table/columns.ts';
import type { FieldError } from '../fields.ts';
import type { ApiObject, Json } from '../object.ts';
import type { FieldReader } from '../store/selectors.ts';
import type { UserInfo } from '../types.ts';
import type { Schema } from '../validation/schema.ts';

/** A column of `kubectl get`. */
export interface Column extends Omit<TableColumn, 'cell'> {
  cell(object: ApiObject, now: number): unknown;
}

interface ScalePaths {
  specReplicas: string[];
  statusReplicas: string[];
  labelSelector?: string[];
}

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch';

/** Context of a write. */
interface WriteContext {
  user: UserInfo;
  now: number;
}

/** A resource in one version. `prepare…` hooks may change the object; `validate…` hooks may not. */
export interface ResourceType {
  group: string;
  version: string;
  plural: string;
  singular: string;
  kind: string;
  listKind: string;
  namespaced: boolean;
  shortNames: string[];
  categories: string[];
  verbs: Verb[];
  /** Name of the collection in the store; versions of a custom resource share one. */
  storage: string;
  /** True for a custom resource: no kind is guessed, no update without a version, no strategic merge patch. */
  custom: boolean;
  /** Undefined if nothing is checked or pruned. */
  schema?: Schema;
  columns: Column[];
  /** Fields for field selectors, besides metadata.name and metadata.namespace. */
  selectable: Record<string, FieldReader>;
  status: boolean;
  scale?: ScalePaths;
  /** True if metadata.generation counts changes of everything but metadata and status. */
  generation: boolean;
  /** Rule for names; default: DNS subdomains. */
  nameRule?: 'subdomain' | 'label' | 'path';
  prepareCreate?(object: ApiObject, context: WriteContext): void;
  /** Prepares a write to the status subresource. */
  prepareStatus?(object: ApiObject): void;
  prepareUpdate?(object: ApiObject, old: ApiObject, context: WriteContext): void;
  /** Refuses an object that does not fit the rest of the cluster; `lookup` finds objects in the same namespace. */
  admit?(object: ApiObject, lookup: (storage: string, name: string) => ApiObject | undefined): void;
  validate?(object: ApiObject, old: ApiObject | undefined): FieldError[];
  /** Checks CEL rules and others that require a valid object; on the status subresource too. */
  validateLate?(object: ApiObject, old: ApiObject | undefined): FieldError[];
  /** Returns the seconds of grace of a delete, 0 for an immediate one. Absent: always immediate. */
  graceSeconds?(object: ApiObject, requested: number | undefined): number;
  /** Decides on an object that is marked: true keeps it until a controller of this server has cleaned up after it. */
  holdsDeletion?(object: ApiObject): boolean;
  /** True if the answer to an immediate delete is the object and not a Status. */
  returnsDeleted?: boolean;
  /** Schema for OpenAPI, if it has more than `schema`. */
  openapi?: Json;
}

export const groupVersion = (type: Pick<ResourceType, 'group' | 'version'>) =>
  type.group === '' ? type.version : `${type.group}/${type.version}`;

export const storageName = (group: string, plural: string) => (group === '' ? plural : `${plural}.${group}`);
