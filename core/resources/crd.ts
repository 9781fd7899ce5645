import * as z from 'zod';
import { approvalSpec } from './approval.ts';
import { blobSpec } from './blob.ts';
import { environmentSpec, environmentStatus } from './environment.ts';
import { API_GROUP, API_VERSION } from './names.ts';
import { rules } from './schema.ts';
import { sessionSpec, sessionStatus } from './session.ts';
import { sessionClassSpec } from './sessionclass.ts';
import { sessionPoolSpec, sessionPoolStatus } from './sessionpool.ts';
import { turnRules, turnSpec, turnStatus } from './turn.ts';

/** Builds CustomResourceDefinitions that a kube-apiserver accepts as structural from the zod schemas. */

type JsonSchema = { [key: string]: unknown };

interface Column {
  name: string;
  type: 'string' | 'integer' | 'date';
  jsonPath: string;
  description: string;
  /** 1: shown by `-o wide` only. */
  priority?: number;
}

interface Kind {
  kind: string;
  plural: string;
  shortNames: string[];
  scope: 'Namespaced' | 'Cluster';
  description: string;
  spec: z.ZodType;
  status?: z.ZodType;
  rootRules?: ReturnType<typeof rules>;
  selectableFields?: string[];
  /** Paths of the scale subresource. */
  scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath: string };
  columns: Column[];
}

const reasonOf = (type: string) => `.status.conditions[?(@.type=="${type}")].reason`;
const sinceOf = (type: string) => `.status.conditions[?(@.type=="${type}")].lastTransitionTime`;
const message = (type: string, description: string): Column => ({
  name: 'Message',
  type: 'string',
  jsonPath: `.status.conditions[?(@.type=="${type}")].message`,
  description,
  priority: 1,
});

const phase: Column = { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'What it is doing' };
const reason: Column = {
  name: 'Reason',
  type: 'string',
  jsonPath: '.status.reason',
  description: 'Why, where the phase alone does not tell it',
};
const age: Column = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'Time since creation',
};

export const kinds: Kind[] = [
  {
    kind: 'Session',
    plural: 'sessions',
    shortNames: ['sess'],
    scope: 'Namespaced',
    description: 'An agent session. It takes turns, runs them in a pod, and keeps its state when the pod is deleted.',
    spec: sessionSpec,
    status: sessionStatus,
    rootRules: rules({
      rule: "size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
      message: 'metadata.name must be a DNS label of at most 63 characters, for example my-session',
    }),
    selectableFields: ['.spec.class', '.spec.parent.name', '.status.phase'],
    columns: [
      phase,
      reason,
      { name: 'Since', type: 'date', jsonPath: '.status.phaseSince', description: 'Time in this phase' },
      { name: 'Turns', type: 'integer', jsonPath: '.status.turns.total', description: 'Turns that have ended' },
      { name: 'Last', type: 'string', jsonPath: '.status.lastTurn.phase', description: 'Phase of the last ended turn' },
      age,
      {
        name: 'Queue',
        type: 'integer',
        jsonPath: '.status.queue.position',
        description: 'Position in the queue for a slot',
        priority: 1,
      },
      {
        name: 'Turn',
        type: 'string',
        jsonPath: '.status.currentTurn',
        description: 'The turn that runs or waits for an approval',
        priority: 1,
      },
      {
        name: 'Active',
        type: 'date',
        jsonPath: '.status.lastActiveAt',
        description: 'Time since the last activity',
        priority: 1,
      },
      { name: 'Class', type: 'string', jsonPath: '.spec.class', description: 'The SessionClass', priority: 1 },
      {
        name: 'Parent',
        type: 'string',
        jsonPath: '.spec.parent.name',
        description: 'The session that it was made for',
        priority: 1,
      },
      { name: 'Pod', type: 'string', jsonPath: '.status.podName', description: 'The current pod', priority: 1 },
      message('Ready', 'Details of the reason'),
    ],
  },
  {
    kind: 'Turn',
    plural: 'turns',
    shortNames: ['turn'],
    scope: 'Namespaced',
    description: 'One input to a session, and its result.',
    spec: turnSpec,
    status: turnStatus,
    rootRules: turnRules,
    selectableFields: ['.spec.session', '.status.phase'],
    columns: [
      { name: 'Session', type: 'string', jsonPath: '.spec.session', description: 'The session' },
      { name: 'Index', type: 'integer', jsonPath: '.status.index', description: 'The order within the session' },
      phase,
      reason,
      // The status has no startedAt at first: writing it at once would be one more write for every turn.
      {
        name: 'Since',
        type: 'date',
        jsonPath: sinceOf('Running'),
        description: 'Time since it began to run or to wait for an approval, or since it ended',
      },
      age,
      {
        name: 'Request',
        type: 'string',
        jsonPath: '.status.approval.id',
        description: 'Id of its last request for an approval',
        priority: 1,
      },
      {
        name: 'Attempt',
        type: 'integer',
        jsonPath: '.status.attempt',
        description: 'Number of attempts',
        priority: 1,
      },
      {
        name: 'Started',
        type: 'date',
        jsonPath: '.status.startedAt',
        description: 'Time since its agent started',
        priority: 1,
      },
      {
        name: 'Finished',
        type: 'date',
        jsonPath: '.status.finishedAt',
        description: 'Time since it ended',
        priority: 1,
      },
      message('Finished', 'Details of the reason'),
    ],
  },
  {
    kind: 'Approval',
    plural: 'approvals',
    shortNames: [],
    scope: 'Namespaced',
    description:
      'A decision on a request of a turn. It cannot be changed, and applies only to the request that it names.',
    spec: approvalSpec,
    selectableFields: ['.spec.turn', '.spec.requestId'],
    columns: [
      { name: 'Turn', type: 'string', jsonPath: '.spec.turn', description: 'The turn that asked' },
      { name: 'Decision', type: 'string', jsonPath: '.spec.decision', description: 'Approve or Deny' },
      { name: 'By', type: 'string', jsonPath: '.spec.requester', description: 'Who decided, if known' },
      age,
      { name: 'Request', type: 'string', jsonPath: '.spec.requestId', description: 'Id of the request', priority: 1 },
      { name: 'Note', type: 'string', jsonPath: '.spec.note', description: 'Reason for the decision', priority: 1 },
    ],
  },
  {
    kind: 'SessionClass',
    plural: 'sessionclasses',
    shortNames: ['sclass'],
    scope: 'Cluster',
    description: 'Defaults of the sessions that name it, and what they may set.',
    spec: sessionClassSpec,
    columns: [
      { name: 'Runner', type: 'string', jsonPath: '.spec.runner', description: 'How the runner gets into the pod' },
      {
        name: 'Network',
        type: 'string',
        jsonPath: '.spec.sandbox.network.mode',
        description: 'What its pods may reach',
      },
      {
        name: 'Max-Running',
        type: 'integer',
        jsonPath: '.spec.limits.maxRunning',
        description: 'Maximum number of sessions that have a pod at the same time; empty: no limit of its own',
      },
      age,
      {
        name: 'Image',
        type: 'string',
        jsonPath: '.spec.image',
        description: 'The image; empty: the installation’s',
        priority: 1,
      },
    ],
  },
  {
    kind: 'SessionPool',
    plural: 'sessionpools',
    shortNames: ['spool'],
    scope: 'Namespaced',
    description: 'Pods of a SessionClass that are kept ready, so that sessions of its namespace start without a wait.',
    spec: sessionPoolSpec,
    status: sessionPoolStatus,
    // Pods have the name in a label.
    rootRules: rules({
      rule: "size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
      message: 'metadata.name must be a DNS label of at most 63 characters, for example default',
    }),
    scale: {
      specReplicasPath: '.spec.replicas',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    },
    columns: [
      { name: 'Class', type: 'string', jsonPath: '.spec.class', description: 'The SessionClass' },
      { name: 'Desired', type: 'integer', jsonPath: '.spec.replicas', description: 'Pods to keep ready' },
      { name: 'Ready', type: 'integer', jsonPath: '.status.ready', description: 'Pods that can be claimed now' },
      { name: 'Reason', type: 'string', jsonPath: reasonOf('Ready'), description: 'Why it is full or not' },
      { name: 'Claimed', type: 'integer', jsonPath: '.status.claimed', description: 'Starts with a pod of the pool' },
      { name: 'Missed', type: 'integer', jsonPath: '.status.missed', description: 'Cold starts for want of a pod' },
      age,
      {
        name: 'Pods',
        type: 'integer',
        jsonPath: '.status.replicas',
        description: 'Ready and starting pods',
        priority: 1,
      },
      message('Ready', 'The reason, in words'),
    ],
  },
  {
    kind: 'Environment',
    plural: 'environments',
    shortNames: ['pyenv'],
    scope: 'Namespaced',
    description: 'Python packages for the sessions that name it; built once when a session needs them.',
    spec: environmentSpec,
    status: environmentStatus,
    rootRules: rules({
      rule: "size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
      message: 'metadata.name must be a DNS label of at most 63 characters, for example my-tools',
    }),
    columns: [
      phase,
      reason,
      { name: 'Python', type: 'string', jsonPath: '.status.pythonVersion', description: 'The Python that it is for' },
      age,
      { name: 'Bytes', type: 'integer', jsonPath: '.status.bytes', description: 'Its size on disk', priority: 1 },
      { name: 'Class', type: 'string', jsonPath: '.spec.class', description: 'The SessionClass', priority: 1 },
      {
        name: 'Build',
        type: 'string',
        jsonPath: '.status.build',
        description: 'The session that builds it',
        priority: 1,
      },
      message('Ready', 'The reason, in words'),
    ],
  },
  {
    kind: 'Blob',
    plural: 'blobs',
    shortNames: ['blob'],
    scope: 'Namespaced',
    description: 'A part of a state, output or log that is too large for a status. Berth writes and deletes it.',
    spec: blobSpec,
    selectableFields: ['.spec.session', '.spec.sessionUID'],
    columns: [
      { name: 'Session', type: 'string', jsonPath: '.spec.session', description: 'The session' },
      { name: 'Kind', type: 'string', jsonPath: '.spec.kind', description: 'Kind of the content' },
      { name: 'Part', type: 'integer', jsonPath: '.spec.part', description: 'Number of this part' },
      { name: 'Parts', type: 'integer', jsonPath: '.spec.parts', description: 'Number of parts' },
      { name: 'Bytes', type: 'integer', jsonPath: '.spec.bytes', description: 'Size of the content in bytes' },
      age,
    ],
  },
];

const SAFE = Number.MAX_SAFE_INTEGER;

/** Rewrites zod's output into the subset that a structural schema may have. */
function structural(node: unknown, path: string): JsonSchema {
  const source = node as JsonSchema;
  const out: JsonSchema = {};
  for (const [key, value] of Object.entries(source)) {
    switch (key) {
      case '$schema':
      case 'propertyNames':
        break;
      case 'additionalProperties':
        // Only the values of a map are described. The API server itself handles unknown fields: it prunes or refuses
        // them.
        if (typeof value === 'object') out.additionalProperties = structural(value, `${path}{}`);
        break;
      case 'minimum':
        if (value !== -SAFE) out.minimum = value;
        break;
      case 'maximum':
        if (value !== SAFE) out.maximum = value;
        break;
      case 'properties':
        out.properties = Object.fromEntries(
          Object.entries(value as JsonSchema).map(([name, child]) => [name, structural(child, `${path}.${name}`)]),
        );
        break;
      case 'items':
        out.items = structural(value, `${path}[]`);
        break;
      case '$ref':
      case 'anyOf':
      case 'oneOf':
      case 'allOf':
      case 'not':
      case 'const':
        throw new Error(`${path}: ${key} cannot stand in a structural schema; write the schema without it`);
      default:
        out[key] = value;
    }
  }
  if (out.type === 'integer') out.format = (out.maximum as number) <= 2 ** 31 - 1 ? 'int32' : 'int64';
  if (out.type === 'string' && out.maxLength === undefined && !out.enum) {
    throw new Error(`${path}: a string needs a maxLength, for the cost of CEL rules`);
  }
  if (out.type === 'array' && out.maxItems === undefined) throw new Error(`${path}: an array needs a maxItems`);
  return out;
}

/** Returns the OpenAPI 3.0 schema of a zod schema in the form that Kubernetes accepts. */
function structuralSchema(schema: z.ZodType, path: string): JsonSchema {
  return structural(z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', unrepresentable: 'throw' }), path);
}

/** Returns the CustomResourceDefinition of a kind. */
export function customResourceDefinition(kind: Kind): JsonSchema {
  const properties: JsonSchema = {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    spec: structuralSchema(kind.spec.describe('Desired state.'), `${kind.kind}.spec`),
  };
  if (kind.status)
    properties.status = structuralSchema(
      kind.status.describe('Observed state; written by Berth.'),
      `${kind.kind}.status`,
    );
  const shortNames = kind.shortNames.filter((name) => name !== kind.kind.toLowerCase());
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${API_GROUP}` },
    spec: {
      group: API_GROUP,
      scope: kind.scope,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.kind.toLowerCase(),
        ...(shortNames.length > 0 ? { shortNames } : {}),
        categories: ['berth'],
      },
      // The API server's default. It is written out, so that tools see no difference between the object and its manifest.
      conversion: { strategy: 'None' },
      versions: [
        {
          name: API_VERSION,
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: kind.description,
              required: ['spec'],
              properties,
              ...kind.rootRules,
            },
          },
          ...(kind.status ? { subresources: { status: {}, ...(kind.scale ? { scale: kind.scale } : {}) } } : {}),
          ...(kind.selectableFields
            ? { selectableFields: kind.selectableFields.map((jsonPath) => ({ jsonPath })) }
            : {}),
          additionalPrinterColumns: kind.columns,
        },
      ],
    },
  };
}
