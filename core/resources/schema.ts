import * as z from 'zod';
import { DURATION_PATTERN } from './duration.ts';
import { RUNNER_DIRECTORY, SECRETS_DIRECTORY } from './names.ts';

/** Schemas that the kinds share. Their descriptions become the CRD's and OpenAPI's. */

/** A validation rule in CEL, checked by the API server. The message must say what to do. */
export interface Rule {
  rule: string;
  message: string;
  fieldPath?: string;
  reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
  optionalOldSelf?: boolean;
}

/** Attaches CEL rules to a schema; they pass through to the CRD. */
export function rules(...list: Rule[]): { 'x-kubernetes-validations': Rule[] } {
  return { 'x-kubernetes-validations': list };
}

/**
 * Any JSON value. The API server checks neither its type nor its size, so each reader checks both. It is nullable
 * because the API server would drop a null otherwise.
 */
export const anyJson = () => z.unknown().meta({ 'x-kubernetes-preserve-unknown-fields': true, nullable: true });

export const dnsLabel = () =>
  z
    .string()
    .min(1)
    .max(63)
    .regex(
      /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
      'must be a DNS label: lower-case letters, digits and "-", for example my-session',
    );

/** Name of a Turn or SessionClass: several labels joined by dots are allowed. */
export const dnsSubdomain = () =>
  z
    .string()
    .min(1)
    .max(253)
    .regex(
      /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
      'must be a DNS name: lower-case letters, digits, "-" and ".", for example my-class',
    );

export const duration = () =>
  z.string().max(32).regex(new RegExp(DURATION_PATTERN), 'must be a duration, for example 90s, 30m or 1h30m');

export const quantity = () =>
  z
    .string()
    .max(32)
    .regex(
      /^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/,
      'must be a Kubernetes quantity, for example 500m, 2 or 512Mi',
    );

export const timestamp = () => z.string().max(64).meta({ format: 'date-time' });

export const digest = () =>
  z
    .string()
    .max(64)
    .regex(/^[0-9a-f]{64}$/);

export const count = () => z.int32().min(0);

const quantities = z
  .strictObject({
    cpu: quantity().optional().describe('CPU in cores, for example 500m for half of one or 2.'),
    memory: quantity().optional().describe('Memory in bytes, for example 512Mi.'),
    'ephemeral-storage': quantity()
      .optional()
      .describe('What the pod writes to its node’s disk, in bytes, for example 2Gi; a volume does not count.'),
  })
  .describe('Amounts by resource name.');

export const resourceRequirements = z.strictObject({
  requests: quantities
    .optional()
    .describe(
      'What the scheduler reserves for the pod. One above a limit that is not given beside it raises that limit.',
    ),
  limits: quantities
    .optional()
    .describe('What the pod may use at most. One below a request that is not given beside it lowers that request.'),
});

/** Builds a schema per timeout from its description and default. */
const eachTimeout = <T>(make: (text: string, byDefault: string) => T) => ({
  start: make('From the creation of the pod until it takes turns.', '10m'),
  turn: make('From the start of a turn until its result.', '30m'),
  stall: make('How long a running turn may be silent: no output, no event. Then it is stopped.', 'for ever'),
  idle: make('How long after the last activity the pod is given up; the next turn wakes the session.', '2h'),
  approval: make('How long a turn that asks waits for a decision; then it fails.', '24h'),
  persist: make('How long a result or a suspension waits for a store that fails.', '5m'),
  lifetime: make('From the creation of the session until it is finished, whatever runs.', 'for ever'),
});

export const timeouts = z.strictObject(
  eachTimeout((text, byDefault) => duration().optional().describe(`${text} Default: ${byDefault}.`)),
);

export const maxTimeouts = z.strictObject(
  eachTimeout((text) => duration().optional().describe(`The most that a session gets. ${text} Default: any.`)),
);

/**
 * Directories of the session pod, its container runtime and the image's programs. A volume at or below one of them
 * breaks the pod.
 */
const TAKEN = [
  ...['/berth', RUNNER_DIRECTORY, SECRETS_DIRECTORY, '/opt/berth', '/tmp'],
  ...['/proc', '/sys', '/dev', '/etc', '/boot', '/run', '/var/run'],
  ...['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'],
  ...['/usr/bin', '/usr/sbin', '/usr/lib', '/usr/lib32', '/usr/lib64', '/usr/libexec'],
  ...['/usr/local/bin', '/usr/local/sbin', '/usr/local/lib'],
];
/** Parent directories of those. A volume at one of them hides them; a volume below is allowed. */
const ABOVE = ['/usr', '/usr/local', '/opt', '/var'];

const workspace = z
  .strictObject({
    type: z
      .enum(['None', 'Volume'])
      .default('None')
      .describe('Volume: a PersistentVolumeClaim of the session’s own. Default None.'),
    size: quantity().optional().describe('Size of the volume in bytes, for example 10Gi.'),
    storageClassName: z
      .string()
      .min(1)
      .max(253)
      .optional()
      .describe('StorageClass of the volume. Default: the cluster’s.'),
    mountPath: z
      .string()
      .max(512)
      .regex(/^(\/[A-Za-z0-9_][A-Za-z0-9._-]*)+$/, 'must be an absolute path, for example /workspace')
      .optional()
      .describe('Where the volume is. Default /workspace.'),
  })
  .meta(
    rules(
      {
        rule: "self.type != 'Volume' || has(self.size)",
        message: 'a Volume needs a size, for example 10Gi',
        fieldPath: '.size',
      },
      {
        rule: `!has(self.mountPath) || !self.mountPath.matches('^((${TAKEN.join('|')})(/|$)|(${ABOVE.join('|')})$)')`,
        message: 'lies in a directory that is not free, or hides one; choose another one, for example /workspace',
        fieldPath: '.mountPath',
      },
    ),
  )
  .describe('A volume that outlives the pod and goes with the Session. It is the working directory of the agent.');

/** Selector of objects by their labels, as in all of Kubernetes; an empty one selects every object. */
export const labelSelector = z.strictObject({
  matchLabels: z
    .record(z.string().max(317), z.string().max(63))
    .optional()
    .describe('Labels that the object has, each with this value.'),
  matchExpressions: z
    .array(
      z
        .strictObject({
          key: z.string().min(1).max(317).describe('The label.'),
          operator: z
            .enum(['In', 'NotIn', 'Exists', 'DoesNotExist'])
            .describe('In: its value is one of values. NotIn: it is none of them, or there is no such label.'),
          values: z.array(z.string().max(63)).max(64).optional().describe('With In and NotIn.'),
        })
        .meta(
          rules({
            rule: "(self.operator == 'In' || self.operator == 'NotIn') == (has(self.values) && size(self.values) > 0)",
            message: 'In and NotIn need values, Exists and DoesNotExist have none',
            fieldPath: '.values',
          }),
        ),
    )
    .max(16)
    .optional()
    .describe('What holds of its labels besides; all of it must.'),
});
export type LabelSelector = z.infer<typeof labelSelector>;

/** Data that outlives the pod. Every field is optional: the class has the defaults. */
export const persistence = z.strictObject({
  state: z
    .boolean()
    .optional()
    .describe(
      'The state directory outlives the pod. Default true. Where it is false an idle session keeps its pod, so timeouts.lifetime is needed.',
    ),
  maxState: quantity()
    .optional()
    .describe('The largest state, as an archive, in bytes, for example 10Mi. Default: all that Berth can store, 32Mi.'),
  workspace: workspace.optional(),
});

/** Generation of a status or a condition. */
export const observedGeneration = () =>
  z.int().optional().describe('metadata.generation of the spec that this was said of.');

const condition = z.strictObject({
  type: z.string().max(64).describe('What it is about, for example Ready or Finished.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it is so.'),
  reason: z.string().max(64).describe('One word for programs; docs/reference/reasons.md lists them all.'),
  message: z.string().max(4096).describe('A sentence for people.'),
  lastTransitionTime: timestamp().describe('Since when the status is what it is.'),
  observedGeneration: observedGeneration(),
});
export type Condition = z.infer<typeof condition>;

export const conditions = () =>
  z
    .array(condition)
    .max(16)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
    .optional()
    .describe('What is so, why, and since when; for programs and `kubectl wait`.');

/**
 * Location of a sealed state, and its position (incarnation, seq). The committed state only moves forward in that
 * order.
 */
export const stateRef = z.strictObject({
  inline: z.string().max(12_288).optional().describe('The sealed state itself, base64, up to 8 KiB before it.'),
  ref: z.string().max(253).optional().describe('Key of the sealed state in the store.'),
  digest: digest().describe('sha256 of the plain state archive.'),
  keyId: z.string().max(64).describe('The master key that the state key is derived from.'),
  bytes: z.int().min(0).describe('Size of the plain archive in bytes.'),
  incarnation: z.int().min(0).describe('The incarnation that it comes from.'),
  seq: z.int().min(0).describe('Its number within that incarnation: a later state has a higher one.'),
});
export type StateRef = z.infer<typeof stateRef>;
