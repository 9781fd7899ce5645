import * as z from 'zod';
import { DEFAULT_TIMEOUTS } from './defaults.ts';
import { DURATION_PATTERN } from './duration.ts';
import { BUILDER_DIRECTORY, RUNNER_DIRECTORY, SECRETS_DIRECTORY } from './names.ts';

/** Schemas that the kinds share. Their descriptions become the CRD's and OpenAPI's. */

/** A validation rule in CEL, checked by the API server. The message must say what to do. */
export interface Rule {
  rule: string;
  message: string;
  fieldPath?: string;
  reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
  optionalOldSelf?: boolean;
}

/** Returns a CEL expression that holds while an optional field stays as it is, absent or present. */
export const unchanged = (field: string): string =>
  `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`;

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

/** Reference of an image; the node decides whether there is such an image. */
export const imageReference = () =>
  z.string().min(1).max(512).regex(/^\S+$/, 'must be the reference of an image, without spaces');

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
    cpu: quantity().optional().describe('CPU in cores, for example 2, or 500m for half a core.'),
    memory: quantity().optional().describe('Memory in bytes, for example 512Mi.'),
    'ephemeral-storage': quantity()
      .optional()
      .describe(
        'Bytes on the node’s disk, for example 2Gi: all that the pod writes, and up to 50Mi of its log. A workspace on a volume does not count.',
      ),
  })
  .describe('Amounts by resource name.');

export const resourceRequirements = z.strictObject({
  requests: quantities
    .optional()
    .describe('Amounts that the scheduler reserves for the pod. A request above an inherited limit raises that limit.'),
  limits: quantities
    .optional()
    .describe('Maximum amounts that the pod may use. A limit below an inherited request lowers that request.'),
});

/** Meaning of each timeout. */
export const TIMEOUTS = {
  start: 'Maximum time from the creation of the pod until it can take turns.',
  turn: 'Maximum time from the start of a turn until its result.',
  stall: 'Maximum time that a running turn may write no output and send no events; then it is stopped.',
  idle: 'Time after the last activity until the pod is deleted; the next turn wakes the session.',
  approval: 'Maximum time that a turn waits for an approval; then it fails.',
  persist: 'Maximum time that a result or a suspension waits for a failing store.',
  lifetime: 'Time from the creation of the session until it is finished, even while a turn runs.',
} as const;

/** Builds a schema for each timeout from its description and default. */
const eachTimeout = <T>(make: (text: string, byDefault: string) => T) => {
  const named = (name: keyof typeof TIMEOUTS) => make(TIMEOUTS[name], DEFAULT_TIMEOUTS[name] ?? 'no limit');
  return {
    start: named('start'),
    turn: named('turn'),
    stall: named('stall'),
    idle: named('idle'),
    approval: named('approval'),
    persist: named('persist'),
    lifetime: named('lifetime'),
  };
};

export const timeouts = z.strictObject(
  eachTimeout((text, byDefault) => duration().optional().describe(`${text} Default: ${byDefault}.`)),
);

export const maxTimeouts = z.strictObject(
  eachTimeout((text) => duration().optional().describe(`Ceiling of a session’s value. ${text} Default: no ceiling.`)),
);

/**
 * Directories of the session pod, its container runtime and the image's programs. A volume at or below one of them
 * breaks the pod.
 */
const TAKEN = [
  ...['/berth', BUILDER_DIRECTORY, RUNNER_DIRECTORY, SECRETS_DIRECTORY, '/opt/berth', '/tmp'],
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
      .describe('Volume: a PersistentVolumeClaim for this session. Default None.'),
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
      .describe('Path where the volume is mounted. Default /workspace.'),
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
  .describe(
    'Volume that is kept while the session has no pod, and deleted with the Session. It is the agent’s default working directory.',
  );

/** Selector of objects by their labels, as in all of Kubernetes; an empty one selects every object. */
export const labelSelector = z.strictObject({
  matchLabels: z
    .record(z.string().max(317), z.string().max(63))
    .optional()
    .describe('Labels and values that the object must have.'),
  matchExpressions: z
    .array(
      z
        .strictObject({
          key: z.string().min(1).max(317).describe('Key of the label.'),
          operator: z
            .enum(['In', 'NotIn', 'Exists', 'DoesNotExist'])
            .describe(
              'Relation of label and values. In: the label’s value is one of values. NotIn: it is none of values, or the label is absent. Exists, DoesNotExist: the label is present or absent.',
            ),
          values: z.array(z.string().max(63)).max(64).optional().describe('Values for In and NotIn.'),
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
    .describe('Further requirements on labels. All must hold.'),
});
export type LabelSelector = z.infer<typeof labelSelector>;

/** Data that outlives the pod. Every field is optional: the class has the defaults. */
export const persistence = z.strictObject({
  state: z
    .boolean()
    .optional()
    .describe(
      'Keeps the state directory when the pod is deleted. Default true. With false an idle session keeps its pod, and timeouts.lifetime is required.',
    ),
  maxState: quantity()
    .optional()
    .describe(
      'Maximum size of the state archive in bytes, for example 10Mi. Default: 32Mi, the maximum that Berth can store.',
    ),
  workspace: workspace.optional(),
});

/** Generation of a status or a condition. */
export const observedGeneration = () => z.int().optional().describe('metadata.generation that this describes.');

/** A condition's reason, beside the phase. */
export const phaseReason = () =>
  z
    .string()
    .max(64)
    .optional()
    .describe(
      'Reason in one word, where the phase alone does not tell it: what the object waits for or why it ended. The conditions have the message.',
    );

const condition = z.strictObject({
  type: z.string().max(64).describe('Type of the condition, for example Ready or Finished.'),
  status: z
    .enum(['True', 'False', 'Unknown'])
    .describe('True if the condition holds, False if not, Unknown if it is not known.'),
  reason: z.string().max(64).describe('Reason in one word, for programs; docs/reference/reasons.md lists all of them.'),
  message: z.string().max(4096).describe('Details for people.'),
  lastTransitionTime: timestamp().describe('Time of the last change of status.'),
  observedGeneration: observedGeneration(),
});
export type Condition = z.infer<typeof condition>;

export const conditions = () =>
  z
    .array(condition)
    .max(16)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
    .optional()
    .describe('Conditions, for programs and `kubectl wait`.');

/**
 * Location of a sealed state, and its position (incarnation, seq). The committed state only moves forward in that
 * order.
 */
export const stateRef = z.strictObject({
  inline: z.string().max(12_288).optional().describe('Sealed state, base64; up to 8 KiB before encoding.'),
  ref: z.string().max(253).optional().describe('Key of the sealed state in the store.'),
  digest: digest().describe('sha256 of the unsealed state archive.'),
  keyId: z.string().max(64).describe('Id of the master key that the state’s key is derived from.'),
  bytes: z.int().min(0).describe('Size of the unsealed archive in bytes.'),
  incarnation: z.int().min(0).describe('Incarnation that produced the state.'),
  seq: z.int().min(0).describe('Sequence number within that incarnation; a later state has a higher one.'),
});
export type StateRef = z.infer<typeof stateRef>;
