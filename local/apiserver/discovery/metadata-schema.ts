import type { Schema } from '../validation/schema.ts';

const string = (description: string): Schema => ({ type: 'string', description });
const strings = (description: string): Schema => ({
  type: 'object',
  description,
  additionalProperties: { type: 'string' },
});

/** Metadata as `kubectl explain` shows it. */
export const metadataSchema: Schema = {
  type: 'object',
  description: "Standard object's metadata.",
  properties: {
    name: string('Unique within a namespace; cannot be updated.'),
    generateName: string('A prefix the server makes a unique name from when no name is given.'),
    namespace: string('The space within which each name is unique.'),
    uid: string('Unique in time and space; set by the server.'),
    resourceVersion: string('Opaque: what a write is based on, and where a watch goes on.'),
    generation: { type: 'integer', format: 'int64', description: 'Counts changes of the desired state.' },
    creationTimestamp: { ...string('When the object was created; set by the server.'), format: 'date-time' },
    deletionTimestamp: { ...string('When the object will be or was to be deleted.'), format: 'date-time' },
    deletionGracePeriodSeconds: { type: 'integer', format: 'int64', description: 'Seconds it has to end gracefully.' },
    labels: strings('Keys and values to select objects by.'),
    annotations: strings('Keys and values that tools keep with the object.'),
    finalizers: {
      type: 'array',
      items: { type: 'string' },
      description: 'What has to be done before the object is gone.',
      'x-kubernetes-list-type': 'set',
    },
    ownerReferences: {
      type: 'array',
      description: 'Objects this one depends on; when all are gone it is collected.',
      items: {
        type: 'object',
        required: ['apiVersion', 'kind', 'name', 'uid'],
        properties: {
          apiVersion: string('API version of the owner.'),
          kind: string('Kind of the owner.'),
          name: string('Name of the owner.'),
          uid: string('UID of the owner.'),
          controller: { type: 'boolean', description: 'Whether the owner manages this object.' },
          blockOwnerDeletion: {
            type: 'boolean',
            description: 'Whether a foreground deletion of the owner waits for it.',
          },
        },
      },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
    },
    managedFields: {
      type: 'array',
      description: 'Which manager set which fields by server-side apply.',
      items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    },
  },
};
