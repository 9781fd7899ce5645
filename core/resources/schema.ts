import * as z from 'zod';
import { DURATION_PATTERN } from './duration.ts';

/** The pieces that the kinds share. Descriptions become the CRD's and OpenAPI's. */

/** A validation rule in CEL, checked by the API server. The message says what to do. */
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

/** Any JSON value. The API server sees neither its type nor its size: whoever reads it checks both. Not nullable it would lose a null. */
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

/** Names of Turns and SessionClasses: several labels joined by dots are allowed. */
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
    cpu: quantity().optional(),
    memory: quantity().optional(),
    'ephemeral-storage': quantity().optional(),
  })
  .describe('Amounts by resource name.');

export const resourceRequirements = z.strictObject({
  requests: quantities.optional().describe('What the scheduler reserves for the pod.'),
  limits: quantities.optional().describe('What the pod may use at most.'),
});

export const timeouts = z.strictObject({
  start: duration().optional().describe('From the creation of the pod until it takes turns. Default 10m.'),
  turn: duration().optional().describe('From the start of a turn until its result. Default 30m.'),
});

export const condition = z.strictObject({
  type: z.string().max(64),
  status: z.enum(['True', 'False', 'Unknown']),
  reason: z.string().max(64).describe('One word for programs; docs/reference/reasons.md lists them all.'),
  message: z.string().max(4096).describe('A sentence for people.'),
  lastTransitionTime: timestamp(),
  observedGeneration: z.int().optional(),
});
export type Condition = z.infer<typeof condition>;

export const conditions = () =>
  z
    .array(condition)
    .max(16)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] });

/** Where a sealed state is, and its place in the order (incarnation, seq) in which states only move forward. */
export const stateRef = z.strictObject({
  inline: z.string().max(12_288).optional().describe('The sealed state itself, base64, up to 8 KiB before it.'),
  ref: z.string().max(253).optional().describe('Key of the sealed state in the store.'),
  digest: digest().describe('sha256 of the plain state archive.'),
  keyId: z.string().max(64).describe('The master key that the state key is derived from.'),
  bytes: z.int().min(0).describe('Size of the plain archive.'),
  incarnation: z.int().min(0),
  seq: z.int().min(0),
});
export type StateRef = z.infer<typeof stateRef>;
