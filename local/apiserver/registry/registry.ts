import type { Clock, Random } from '../../../core/runtime.ts';
import { trackCreate, trackUpdate } from '../apply/managers.ts';
import { alreadyExists, badRequest, conflict, failure, forbidden, modified, notFound } from '../errors.ts';
import { type FieldError, invalid, invalidObject } from '../fields.ts';
import { type ApiObject, clone, equal } from '../object.ts';
import type { VersionedStore } from '../store/versioned.ts';
import type { UserInfo } from '../types.ts';
import { validateValue } from '../validation/values.ts';
import type { Catalogue } from './catalogue.ts';
import { decode, type FieldValidation, present } from './decode.ts';
import { fillNewMetadata, keepSystemMetadata, metadataErrors, metadataUpdateErrors, sameSpec } from './metadata.ts';
import type { ResourceType } from './types.ts';

export interface WriteRequest {
  user: UserInfo;
  fieldValidation: FieldValidation;
  dryRun: boolean;
  /** Name of the field manager of a change. */
  fieldManager: string;
  /** Handler of a warning: something unusual that is no error. */
  warn(text: string): void;
  /** Refuses a valid object by an admission policy; absent: none applies. `old` is the stored object of an update. */
  admit?(object: ApiObject, old: ApiObject | undefined): void;
}

/** Limit of an object, the same as etcd's; bytes of JSON. */
const maxObject = 1.5 * 1024 * 1024;

export interface UpdateOptions {
  subresource?: 'status' | undefined;
  /**
   * True for a PUT, which must name the version that it replaces for a custom resource. Otherwise the object is a
   * patched one.
   */
  replace?: boolean;
  /** True for the result of a server-side apply, which has recorded its manager itself. */
  applied?: boolean;
}

/**
 * Create, read and update with the rules of the API server. All methods are synchronous, and each either succeeds or
 * has no effect.
 */
export class Registry {
  readonly store: VersionedStore;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  readonly random: Random;

  constructor(parts: { store: VersionedStore; catalogue: Catalogue; clock: Clock; random: Random }) {
    this.store = parts.store;
    this.catalogue = parts.catalogue;
    this.clock = parts.clock;
    this.random = parts.random;
  }

  /** Returns the object; throws 404 when there is none. */
  get(type: ResourceType, namespace: string | undefined, name: string): ApiObject {
    const object = this.store.get(type.storage, namespace, name);
    if (!object) throw notFound(type, name);
    return present(object, type);
  }

  create(type: ResourceType, namespace: string | undefined, body: unknown, request: WriteRequest): ApiObject {
    const object = decode(body, type, request);
    this.#settleNamespace(object, type, namespace);
    if (object.metadata.resourceVersion) {
      throw failure(500, '', 'resourceVersion should not be set on objects to be created');
    }
    this.#checkNamespace(type, object);
    const now = this.clock.now();
    fillNewMetadata(object, type, this.random, now);
    delete object.metadata.resourceVersion;
    type.prepareCreate?.(object, { user: request.user, now });
    type.admit?.(object, (storage, name) => this.store.get(storage, namespace, name));
    trackCreate(object, type, request.fieldManager, now);
    this.#validate(type, object, undefined, undefined);
    request.admit?.(object, undefined);
    if (this.store.get(type.storage, object.metadata.namespace, object.metadata.name)) {
      throw alreadyExists(type, object.metadata.name);
    }
    return present(request.dryRun ? object : this.#put(type, object), type);
  }

  /**
   * Replaces an object by the result of `produce` for the stored one, decoded like a request's body. An update without
   * a change writes nothing.
   */
  update(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    produce: (current: ApiObject) => unknown,
    request: WriteRequest,
    options: UpdateOptions = {},
  ): ApiObject {
    const current = this.get(type, namespace, name);
    const object = decode(produce(clone(current)), type, { ...request, patched: options.replace !== true });
    this.#settleNamespace(object, type, namespace);
    if (object.metadata.name === undefined) object.metadata.name = '';
    if (object.metadata.name !== name) {
      throw badRequest(`the name of the object (${object.metadata.name}) does not match the name on the URL (${name})`);
    }
    this.#checkPreconditions(type, object, current, options);
    const now = this.clock.now();
    const updated = options.subresource === 'status' ? withStatus(current, object) : object;
    updated.metadata.managedFields ??= current.metadata.managedFields ?? [];
    keepSystemMetadata(updated, current);
    updated.metadata.resourceVersion = current.metadata.resourceVersion as string;
    if (options.subresource === 'status') type.prepareStatus?.(updated);
    else {
      type.prepareUpdate?.(updated, current, { user: request.user, now });
      if (type.generation && !sameSpec(updated, current)) {
        updated.metadata.generation = (current.metadata.generation ?? 0) + 1;
      }
    }
    this.#validate(type, updated, current, options.subresource);
    request.admit?.(updated, current);
    if (equal(updated, current)) return current;
    if (!options.applied) {
      const manager = { name: request.fieldManager, operation: 'Update', subresource: options.subresource } as const;
      trackUpdate(updated, current, type, manager, now);
    }
    if (request.dryRun) return updated;
    if (isFinished(updated) && !isFinished(current)) return this.store.remove(type.storage, updated);
    return present(this.#put(type, updated), type);
  }

  /** Writes an object that a controller of this server changed, without further checks. */
  force(type: ResourceType, object: ApiObject): ApiObject {
    return this.store.put(type.storage, object, sizeOf(object));
  }

  #put(type: ResourceType, object: ApiObject): ApiObject {
    const size = sizeOf(object);
    if (size > maxObject) throw failure(500, '', 'etcdserver: request is too large');
    return this.store.put(type.storage, object, size);
  }

  #settleNamespace(object: ApiObject, type: ResourceType, namespace: string | undefined): void {
    const { metadata } = object;
    if (!type.namespaced) {
      if (metadata.namespace === '') delete metadata.namespace;
      return;
    }
    if (!metadata.namespace) metadata.namespace = namespace as string;
    if (metadata.namespace !== namespace) {
      throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
    }
  }

  /** Refuses objects in a namespace that is missing or being deleted. */
  #checkNamespace(type: ResourceType, object: ApiObject): void {
    if (!type.namespaced) return;
    const name = object.metadata.namespace as string;
    const namespaces = { group: '', plural: 'namespaces' };
    const namespace = this.store.get('namespaces', undefined, name);
    if (!namespace) throw notFound(namespaces, name);
    if (namespace.metadata.deletionTimestamp) {
      const why = `unable to create new content in namespace ${name} because it is being terminated`;
      const message = `namespace ${name} is being terminated`;
      throw forbidden(type, object.metadata.name ?? '', why, {
        causes: [{ reason: 'NamespaceTerminating', message, field: 'metadata.namespace' }],
      });
    }
  }

  #checkPreconditions(type: ResourceType, object: ApiObject, current: ApiObject, options: UpdateOptions): void {
    const { uid, resourceVersion } = object.metadata;
    const name = current.metadata.name;
    const isOther = uid !== undefined && uid !== '' && uid !== current.metadata.uid;
    if (isOther && (options.replace || options.applied)) {
      throw conflict(
        type,
        name,
        `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.metadata.uid}`,
      );
    }
    if (!resourceVersion || resourceVersion === '0') {
      if (options.replace && type.custom) {
        throw invalidObject({ group: type.group, kind: type.plural }, name, [
          invalid('metadata.resourceVersion', 0, 'must be specified for an update'),
        ]);
      }
    } else if (resourceVersion !== current.metadata.resourceVersion) throw modified(type, name);
    // rest.BeforeUpdate: the uid of a patch is no precondition, but a field that cannot change.
    if (isOther) throw invalidObject(type, name, [invalid('metadata.uid', uid, 'field is immutable')]);
  }

  #validate(
    type: ResourceType,
    object: ApiObject,
    old: ApiObject | undefined,
    subresource: 'status' | undefined,
  ): void {
    const errors: FieldError[] = old ? metadataUpdateErrors(object, old) : [];
    if (subresource !== 'status') errors.push(...metadataErrors(object, type));
    if (type.schema && type.custom) errors.push(...schemaErrors(type, object, old, subresource));
    errors.push(...(type.validate?.(object, old) ?? []));
    if (type.validateLate) {
      if (errors.some((error) => blocking.has(error.reason))) {
        errors.push({
          reason: 'FieldValueInvalid',
          field: '',
          message:
            'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
        });
      } else {
        errors.push(...type.validateLate(object, old));
      }
    }
    if (errors.length > 0) throw invalidObject(type, object.metadata.name ?? '', errors);
  }
}

const sizeOf = (object: ApiObject) => Buffer.byteLength(JSON.stringify(object));

/** Errors after which CEL rules are not evaluated. */
const blocking = new Set<FieldError['reason']>([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

function schemaErrors(
  type: ResourceType,
  object: ApiObject,
  old: ApiObject | undefined,
  subresource: 'status' | undefined,
): FieldError[] {
  if (!type.schema) return [];
  if (subresource !== 'status') return validateValue(object, type.schema, '', old);
  const statusSchema = type.schema.properties?.status;
  if (!statusSchema || object.status === undefined) return [];
  return validateValue(object.status, statusSchema, 'status', old?.status);
}

/** Returns the old object with the new one's status. */
function withStatus(current: ApiObject, object: ApiObject): ApiObject {
  const updated = clone(current);
  if (object.status === undefined) delete updated.status;
  else updated.status = object.status;
  if (object.metadata.managedFields) updated.metadata.managedFields = object.metadata.managedFields;
  return updated;
}

/** Reports whether an object is marked for deletion and waits for nothing more. */
function isFinished(object: ApiObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = object.metadata;
  return deletionTimestamp !== undefined && !deletionGracePeriodSeconds && !finalizers?.length;
}
