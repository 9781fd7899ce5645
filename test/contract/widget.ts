/** A kind with everything that Berth's own kinds rely on. */
export const widgetDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.contract.berth.dev' },
  spec: {
    group: 'contract.berth.dev',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'], categories: ['contract'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: {
            specReplicasPath: '.spec.replicas',
            statusReplicasPath: '.status.replicas',
            labelSelectorPath: '.status.selector',
          },
        },
        selectableFields: [{ jsonPath: '.spec.color' }, { jsonPath: '.status.phase' }],
        additionalPrinterColumns: [
          { name: 'Color', type: 'string', jsonPath: '.spec.color' },
          { name: 'Size', type: 'integer', jsonPath: '.spec.size', priority: 1 },
          { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                required: ['size'],
                'x-kubernetes-validations': [
                  {
                    rule: '!has(self.min) || self.min <= self.size',
                    message: 'min must not be above size',
                    fieldPath: '.min',
                  },
                  {
                    rule: "!has(self.label) || self.label.matches('^[a-z]+$')",
                    messageExpression: "'label ' + self.label + ' must be lower case letters'",
                  },
                  { rule: 'self.size != 13', reason: 'FieldValueForbidden', message: '13 is unlucky' },
                ],
                properties: {
                  size: { type: 'integer', minimum: 0, maximum: 100 },
                  min: { type: 'integer' },
                  ratio: { type: 'number' },
                  replicas: { type: 'integer', format: 'int32', default: 1 },
                  color: {
                    type: 'string',
                    enum: ['red', 'green'],
                    'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'color cannot change' }],
                  },
                  label: { type: 'string', maxLength: 10, minLength: 2 },
                  code: { type: 'string', pattern: '^[a-z]{3}$' },
                  enabled: { type: 'boolean', default: true },
                  note: { type: 'string', nullable: true },
                  when: { type: 'string', format: 'date-time' },
                  any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  free: { 'x-kubernetes-preserve-unknown-fields': true },
                  port: { 'x-kubernetes-int-or-string': true },
                  tags: {
                    type: 'array',
                    maxItems: 3,
                    items: { type: 'string', maxLength: 20 },
                    'x-kubernetes-list-type': 'set',
                  },
                  options: {
                    type: 'object',
                    maxProperties: 3,
                    additionalProperties: { type: 'string', maxLength: 20 },
                  },
                  nested: {
                    type: 'object',
                    properties: { level: { type: 'string', default: 'low' }, other: { type: 'string' } },
                  },
                  parts: {
                    type: 'array',
                    maxItems: 5,
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['name'],
                    items: {
                      type: 'object',
                      required: ['name'],
                      properties: {
                        name: { type: 'string', maxLength: 20 },
                        count: {
                          type: 'integer',
                          'x-kubernetes-validations': [{ rule: 'self >= oldSelf', message: 'count only grows' }],
                        },
                        mode: { type: 'string', default: 'auto' },
                      },
                    },
                  },
                },
              },
              status: {
                type: 'object',
                'x-kubernetes-validations': [
                  {
                    rule: "!has(oldSelf.phase) || oldSelf.phase != 'Done' || (has(self.phase) && self.phase == 'Done')",
                    message: 'a finished widget stays finished',
                  },
                ],
                properties: {
                  phase: { type: 'string', enum: ['Waiting', 'Running', 'Done'] },
                  replicas: { type: 'integer' },
                  selector: { type: 'string' },
                  observedGeneration: { type: 'integer', format: 'int64' },
                  conditions: {
                    type: 'array',
                    maxItems: 8,
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['type'],
                    items: {
                      type: 'object',
                      required: ['type', 'status'],
                      properties: {
                        type: { type: 'string', maxLength: 64 },
                        status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
                        reason: { type: 'string' },
                      },
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};
