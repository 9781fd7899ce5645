import type { Random } from '../../../core/runtime.ts';
import { type FieldError, forbiddenField, invalid, required, tooLong } from '../fields.ts';
import { type ApiObject, equal, isObject, type Meta, timestamp } from '../object.ts';
import {
  generatedName,
  labelErrors,
  labelValueErrors,
  pathErrors,
  qualifiedNameErrors,
  subdomainErrors,
} from './names.ts';
import type { ResourceType } from './types.ts';

const maxAnnotations = 256 * 1024;

/** Returns a random UID. */
export function newUid(random: Random): string {
  const bytes = random.bytes(16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Sets the fields of a new object that only the server sets. */
export function fillNewMetadata(object: ApiObject, type: ResourceType, random: Random, now: number): void {
  const meta = object.metadata;
  if (!meta.name && meta.generateName) meta.name = generatedName(meta.generateName, random);
  meta.uid = newUid(random);
  meta.creationTimestamp = timestamp(now);
  delete meta.deletionTimestamp;
  delete meta.deletionGracePeriodSeconds;
  delete (meta as { selfLink?: string }).selfLink;
  if (type.generation) meta.generation = 1;
  else delete meta.generation;
  tidy(meta);
}

/** Copies the fields that an update can never change from the old object. */
export function keepSystemMetadata(object: ApiObject, old: ApiObject): void {
  const meta = object.metadata;
  const before = old.metadata;
  meta.uid ||= before.uid as string;
  meta.creationTimestamp = before.creationTimestamp as string;
  delete (meta as { selfLink?: string }).selfLink;
  if (before.generation === undefined) delete meta.generation;
  else meta.generation = before.generation;
  if (before.deletionTimestamp) meta.deletionTimestamp = before.deletionTimestamp;
  else delete meta.deletionTimestamp;
  if (before.deletionGracePeriodSeconds === undefined) delete meta.deletionGracePeriodSeconds;
  else meta.deletionGracePeriodSeconds = before.deletionGracePeriodSeconds;
  tidy(meta);
}

/** Removes empty maps and lists, which are not stored. */
function tidy(meta: Meta): void {
  for (const field of ['labels', 'annotations', 'ownerReferences', 'finalizers', 'managedFields'] as const) {
    const value = meta[field];
    if (value === null || (value !== undefined && Object.keys(value).length === 0)) delete meta[field];
  }
  if (!meta.generateName) delete meta.generateName;
}

const nameErrors = { subdomain: subdomainErrors, label: labelErrors, path: pathErrors };

export function metadataErrors(object: ApiObject, type: ResourceType): FieldError[] {
  const meta = object.metadata;
  const rule = nameErrors[type.nameRule ?? 'subdomain'];
  const errors: FieldError[] = [];
  if (meta.generateName) {
    const base = meta.generateName.replace(/-$/, 'a');
    errors.push(...rule(base).map((message) => invalid('metadata.generateName', meta.generateName, message)));
  }
  if (!meta.name) errors.push(required('metadata.name', 'name or generateName is required'));
  else errors.push(...rule(meta.name).map((message) => invalid('metadata.name', meta.name, message)));
  if (type.namespaced) {
    const messages = labelErrors(meta.namespace ?? '');
    errors.push(...messages.map((message) => invalid('metadata.namespace', meta.namespace, message)));
  } else if (meta.namespace) {
    errors.push(forbiddenField('metadata.namespace', 'not allowed on this type'));
  }
  for (const [key, value] of Object.entries(meta.labels ?? {})) {
    errors.push(...qualifiedNameErrors(key).map((message) => invalid('metadata.labels', key, message)));
    errors.push(...labelValueErrors(value).map((message) => invalid('metadata.labels', value, message)));
  }
  let size = 0;
  for (const [key, value] of Object.entries(meta.annotations ?? {})) {
    size += Buffer.byteLength(key) + Buffer.byteLength(value);
    errors.push(
      ...qualifiedNameErrors(key.toLowerCase()).map((message) => invalid('metadata.annotations', key, message)),
    );
  }
  if (size > maxAnnotations) errors.push(tooLong('metadata.annotations', maxAnnotations));
  errors.push(...ownerErrors(meta));
  for (const finalizer of meta.finalizers ?? []) {
    errors.push(...qualifiedNameErrors(finalizer).map((message) => invalid('metadata.finalizers', finalizer, message)));
  }
  return errors;
}

function ownerErrors(meta: Meta): FieldError[] {
  const errors: FieldError[] = [];
  let controller: string | undefined;
  for (const owner of meta.ownerReferences ?? []) {
    const field = 'metadata.ownerReferences';
    if (!owner.apiVersion) errors.push(invalid(`${field}.apiVersion`, owner.apiVersion, 'version must not be empty'));
    if (!owner.kind) errors.push(invalid(`${field}.kind`, owner.kind, 'must not be empty'));
    if (!owner.name) errors.push(invalid(`${field}.name`, owner.name, 'must not be empty'));
    if (!owner.uid) errors.push(invalid(`${field}.uid`, owner.uid, 'must not be empty'));
    if (!owner.controller) continue;
    const name = `${owner.kind}/${owner.name}`;
    if (controller) {
      errors.push(
        invalid(
          field,
          meta.ownerReferences,
          `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${name}`,
        ),
      );
    }
    controller ??= name;
  }
  return errors;
}

export function metadataUpdateErrors(object: ApiObject, old: ApiObject): FieldError[] {
  const meta = object.metadata;
  const before = old.metadata;
  const errors: FieldError[] = [];
  if (before.deletionTimestamp) {
    const added = (meta.finalizers ?? []).filter((finalizer) => !before.finalizers?.includes(finalizer));
    if (added.length > 0) {
      const list = added
        .sort()
        .map((name) => JSON.stringify(name))
        .join(', ');
      errors.push(
        forbiddenField(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`,
        ),
      );
    }
  }
  for (const field of ['name', 'namespace', 'uid'] as const) {
    if (!equal(meta[field], before[field])) {
      errors.push(invalid(`metadata.${field}`, meta[field], 'field is immutable'));
    }
  }
  return errors;
}

/** Reports whether everything but metadata and status is equal. */
export function sameSpec(a: ApiObject, b: ApiObject): boolean {
  const rest = ({ metadata: _, status: __, ...others }: ApiObject) => others;
  return equal(rest(a), rest(b));
}

/**
 * Checks the shape of metadata, which a decoder would refuse; null stands for absent. Returns a text when it is wrong.
 */
export function metadataShapeError(meta: unknown): string | undefined {
  if (!isObject(meta)) return 'metadata must be an object';
  for (const field of ['name', 'namespace', 'generateName', 'uid', 'resourceVersion'] as const) {
    if (meta[field] === null) delete meta[field];
    if (meta[field] !== undefined && typeof meta[field] !== 'string') return `metadata.${field} must be a string`;
  }
  for (const field of ['labels', 'annotations'] as const) {
    const map = meta[field];
    if (map === null) delete meta[field];
    else if (map !== undefined && !(isObject(map) && Object.values(map).every((v) => typeof v === 'string'))) {
      return `metadata.${field} must be a map of strings`;
    }
  }
  const { finalizers, ownerReferences } = meta;
  if (finalizers && !(Array.isArray(finalizers) && finalizers.every((v) => typeof v === 'string'))) {
    return 'metadata.finalizers must be a list of strings';
  }
  if (ownerReferences && !(Array.isArray(ownerReferences) && ownerReferences.every(isObject))) {
    return 'metadata.ownerReferences must be a list of objects';
  }
  return undefined;
}
