import type { FieldError } from '../fields.ts';
import type { ApiObject, Json } from '../object.ts';
import type { FieldReader } from '../store/selectors.ts';
import type { UserInfo } from '../types.ts';
import type { Schema } from '../validation/schema.ts';

/** A column of `kubectl get`. */
export interface Column {
  name: string;
  type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  format?: string;
  description?: string;
  /** 0 is shown always, 1 with `-o wide`. */
  priority?: number;
  cell(object: ApiObject, now: number): unknown;
}

interface ScalePaths {
  specReplicas: string[];
  statusReplicas: string[];
  labelSelector?: string[];
}

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch';

/** What a write is told about its surroundings. */
interface WriteContext {
  user: UserInfo;
  now: number;
}

/**
 * One resource in one version. The hooks get objects that they may change (`prepare…`) or only look at (`validate…`).
 */
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
  /** The collection in the store; versions of a custom resource share one. */
  storage: string;
  /** A custom resource: no kind is guessed, no update without a version, no strategic merge patch. */
  custom: boolean;
  /** Absent: nothing is checked or pruned. */
  schema?: Schema;
  columns: Column[];
  /** What field selectors can name, beside metadata.name and metadata.namespace. */
  selectable: Record<string, FieldReader>;
  status: boolean;
  scale?: ScalePaths;
  /** Whether metadata.generation counts changes of everything but metadata and status. */
  generation: boolean;
  /** What names may be; DNS subdomains by default. */
  nameRule?: 'subdomain' | 'label' | 'path';
  prepareCreate?(object: ApiObject, context: WriteContext): void;
  /** As `prepareUpdate`, of a write to the status subresource. */
  prepareStatus?(object: ApiObject): void;
  prepareUpdate?(object: ApiObject, old: ApiObject, context: WriteContext): void;
  /** Refuses what does not fit the rest of the cluster; `lookup` finds objects in the same namespace. */
  admit?(object: ApiObject, lookup: (storage: string, name: string) => ApiObject | undefined): void;
  validate?(object: ApiObject, old: ApiObject | undefined): FieldError[];
  /** CEL rules and what else is checked only when the rest is right; on the status subresource too. */
  validateLate?(object: ApiObject, old: ApiObject | undefined): FieldError[];
  /** Seconds of grace of a delete, 0 for at once. Absent: always at once. */
  graceSeconds?(object: ApiObject, requested: number | undefined): number;
  /** Called with the marked object: true keeps it until a controller of this server has cleaned up behind it. */
  holdsDeletion?(object: ApiObject): boolean;
  /** The answer to an immediate delete is the object and not a Status. */
  returnsDeleted?: boolean;
  /** The schema as OpenAPI shows it, when it is more than `schema`. */
  openapi?: Json;
}

export const groupVersion = (type: Pick<ResourceType, 'group' | 'version'>) =>
  type.group === '' ? type.version : `${type.group}/${type.version}`;

export const storageName = (group: string, plural: string) => (group === '' ? plural : `${plural}.${group}`);
