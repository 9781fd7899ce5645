/** Objects in the form in which they are cached: without their bodies, and with no field that no decision reads. */
import { createHash } from 'node:crypto';
import { tooDeepAt } from '../../core/depth.ts';
import { canonicalJson } from '../../core/json.ts';
import type { ConfigMap, Container, Pod, StoredPod } from '../../core/kube/builtin.ts';
import type { KubeObject, Stored } from '../../core/kube/types.ts';
import type { StoredApproval, StoredSession, StoredTurn } from '../../core/resources/kinds.ts';
import { jsonBytes, MAX_LAST_OUTPUT_BYTES } from '../../core/resources/limits.ts';
import { ANNOTATION_TOUCHED_AT } from '../../core/resources/names.ts';
import { isNoInput } from '../../core/resources/needed-input.ts';
import type { Condition } from '../../core/resources/schema.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { filesDigest } from '../observed/agent-files.ts';
import type { BodyFacts, CachedApproval, CachedSession, CachedTurn } from '../observed/world.ts';

/** Digest that no input has. */
const NO_DIGEST = '0'.repeat(64);

/** Digest and size of a JSON value. Keys are sorted, as their order does not matter in JSON. `path` is the field's. */
export function bodyFacts(value: unknown, path = 'spec.input'): BodyFacts {
  // The depth is checked before anything recursive.
  const tooDeep = tooDeepAt(value, path);
  if (tooDeep !== undefined) return { digest: NO_DIGEST, bytes: 0, tooDeep };
  return {
    digest: createHash('sha256')
      .update(canonicalJson(value ?? null))
      .digest('hex'),
    bytes: jsonBytes(value ?? null),
    ...(isNoInput(value) ? { none: true } : {}),
  };
}

export function slimMeta<T extends KubeObject>(object: Stored<T>): Stored<T>['metadata'] {
  const {
    managedFields: _m,
    annotations: _a,
    ...rest
  } = object.metadata as Stored<T>['metadata'] & { managedFields?: unknown };
  return rest as Stored<T>['metadata'];
}

/** The fields of an object that are named, as far as it has them. */
function pick<T extends object, K extends keyof T>(object: T, keys: readonly K[]): Pick<T, K> {
  const fields = keys.filter((key) => object[key] !== undefined).map((key) => [key, object[key]]);
  return Object.fromEntries(fields) as Pick<T, K>;
}

/** Size of the JSON up to which the input of a new session is kept for its first turn: many may be created while no controller runs. */
const MAX_KEPT_INPUT = 16_384;

export function slimSession(session: StoredSession): CachedSession {
  const { input, ...spec } = session.spec;
  const facts = input === undefined ? undefined : bodyFacts(input);
  const isKept = session.status === undefined && facts !== undefined && facts.bytes <= MAX_KEPT_INPUT;
  const touched = session.metadata.annotations?.[ANNOTATION_TOUCHED_AT];
  return {
    ...session,
    metadata: { ...slimMeta(session), ...(touched ? { annotations: { [ANNOTATION_TOUCHED_AT]: touched } } : {}) },
    spec: { ...spec, ...(facts ? { input: { ...facts, ...(isKept ? { body: input } : {}) } } : {}) },
  };
}

/** Metadata of a turn that is cached. */
const TURN_METADATA = [
  'name',
  'namespace',
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'deletionTimestamp',
  'ownerReferences',
] as const;

/** Fields of an ended turn's status that are cached as they are. */
const ENDED = ['index', 'phase', 'incarnation', 'podUID', 'startedAt', 'finishedAt', 'state'] as const;

export function slimTurn({ metadata, spec, status = {} }: StoredTurn): CachedTurn {
  return {
    metadata: pick(metadata, TURN_METADATA),
    spec: pick(spec, ['session', 'timeout', 'retry', 'cancel', 'requester']),
    status: isTerminal(status.phase) ? slimStatus(status) : status,
    input: bodyFacts(spec.input),
  };
}

function slimStatus(ended: TurnStatus): TurnStatus {
  const { conditions, output } = ended;
  // Only this message is also shown in the session's status.
  const messageOf = ({ reason, message }: Condition) => (reason === 'StateTooLarge' ? message : '');
  return {
    ...pick(ended, ENDED),
    ...(conditions ? { conditions: conditions.map((one) => ({ ...one, message: messageOf(one) })) } : {}),
    // The output is copied into the session's status when the turn is counted.
    ...(output !== undefined && jsonBytes(output) <= MAX_LAST_OUTPUT_BYTES ? { output } : {}),
  };
}

/** Fields of a turn's status that an unreadable turn keeps: its order, its pod and the state it has reached. */
const SOUND = [
  'index',
  'phase',
  'attempt',
  'incarnation',
  'podUID',
  'inputDigest',
  'concurrencyGroup',
  'state',
  'conditions',
] as const;

/** An unreadable turn, with only the fields that its end needs. */
export function unreadableTurn(
  { metadata, spec, status = {} }: Pick<CachedTurn, 'metadata' | 'spec'> & { status?: TurnStatus | undefined },
  why: string,
): CachedTurn {
  return {
    metadata: pick(metadata, TURN_METADATA),
    spec: pick(spec, ['session', 'cancel']),
    status: pick(status, SOUND),
    input: { digest: status.inputDigest ?? NO_DIGEST, bytes: 0 },
    unreadable: why,
  };
}

export function slimApproval({ metadata, spec }: StoredApproval): CachedApproval {
  return {
    metadata: pick(metadata, [...TURN_METADATA, 'generation']),
    spec: pick(spec, ['turn', 'requestId', 'decision', 'requester']),
    ...responseFacts(spec.response),
  };
}

function responseFacts(response: unknown): Pick<CachedApproval, 'responseBytes' | 'responseTooDeep'> {
  const responseTooDeep = tooDeepAt(response, 'spec.response');
  if (responseTooDeep !== undefined) return { responseBytes: 0, responseTooDeep };
  return { responseBytes: response === undefined ? 0 : jsonBytes(response) };
}

/** Metadata of a ConfigMap that is cached. */
const FILES_METADATA = ['name', 'namespace', 'uid', 'resourceVersion', 'labels'] as const;

/** A ConfigMap with agent files, without its content. */
export interface CachedFiles {
  metadata: Pick<Stored<ConfigMap>['metadata'], (typeof FILES_METADATA)[number]>;
  digest: string;
}

export function slimFiles(configMap: Stored<ConfigMap>): CachedFiles {
  return { metadata: pick(configMap.metadata, FILES_METADATA), digest: filesDigest(configMap) };
}

export function slimPod(pod: StoredPod): StoredPod {
  const { nodeName, containers, initContainers, schedulingGates } = pod.spec;
  const { phase, reason, message, conditions, containerStatuses, initContainerStatuses } = pod.status ?? {};
  const names = (list: Container[]) =>
    list.map(({ name, image = '', restartPolicy }) => ({ name, image, ...(restartPolicy ? { restartPolicy } : {}) }));
  return {
    metadata: slimMeta(pod),
    spec: {
      ...(nodeName ? { nodeName } : {}),
      ...(schedulingGates?.length ? { schedulingGates } : {}),
      ...(initContainers?.length ? { initContainers: names(initContainers) } : {}),
      containers: names(containers),
    },
    status: { phase, reason, message, conditions, containerStatuses, initContainerStatuses } as NonNullable<
      Pod['status']
    >,
  };
}
