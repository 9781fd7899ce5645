/** Converts Kubernetes objects to the form that the API returns. */

import { defined } from '../../core/defined.ts';
import { tooDeepAt } from '../../core/depth.ts';
import type { StoredApproval, StoredSession, StoredTurn } from '../../core/resources/kinds.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import type { Shown } from '../openapi/schemas.ts';

/** Annotation of kubectl that contains the whole object. */
const HIDDEN_ANNOTATIONS = new Set(['kubectl.kubernetes.io/last-applied-configuration']);

const TOO_DEEP = '(nested too deep to be shown)';

export function showSession({ metadata, spec, status }: StoredSession, inList = false): object {
  const { input, ...rest } = spec;
  const shown = inList ? undefined : showJson(input);
  return {
    metadata: showMeta(metadata),
    spec: shown === undefined ? rest : { ...rest, input: shown },
    ...(status ? { status: withoutSealed(status) } : {}),
  };
}

export function showTurn({ metadata, spec, status: stored }: StoredTurn, inList = false): object {
  const status = stored && withRequestId(stored);
  const shown = { ...spec, ...(spec.input === undefined ? {} : { input: showJson(spec.input) }) };
  if (!inList)
    return { metadata: showMeta(metadata), spec: shown, ...(status ? { status: withoutSealed(status) } : {}) };
  const { input: _input, ...rest } = spec;
  if (!status) return { metadata: showMeta(metadata), spec: rest };
  const { output: _output, log, ...short } = withoutSealed(status);
  const { inline: _inline, ...logFacts } = log ?? {};
  return { metadata: showMeta(metadata), spec: rest, status: { ...short, ...(log ? { log: logFacts } : {}) } };
}

export function showApproval({ metadata, spec }: StoredApproval): object {
  const { response } = spec;
  const shown = { ...spec, ...(response === undefined ? {} : { response: showJson(response) }) };
  return { metadata: showMeta(metadata), spec: shown };
}

/** A turn that began to wait under an earlier release has the id of its request as `id` alone. */
function withRequestId(status: TurnStatus): TurnStatus {
  const { approval } = status;
  return approval ? { ...status, approval: { ...approval, requestId: approval.requestId ?? approval.id } } : status;
}

/** Replaces a value that is nested too deep to be written as JSON; kubectl can store such values. */
function showJson(value: unknown): unknown {
  return tooDeepAt(value, '') === undefined ? value : TOO_DEEP;
}

function showMeta(metadata: StoredSession['metadata']): Shown {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp, labels } = metadata;
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => !HIDDEN_ANNOTATIONS.has(key));
  return {
    name,
    namespace,
    uid,
    resourceVersion,
    ...defined({ generation }),
    creationTimestamp,
    ...(deletionTimestamp ? { deletionTimestamp } : {}),
    ...(labels ? { labels } : {}),
    ...(annotations.length > 0 ? { annotations: Object.fromEntries(annotations) } : {}),
  };
}

/** Removes the sealed state, which is of use to a runner only. */
function withoutSealed<T extends { state?: { inline?: string | undefined } | undefined }>(status: T): T {
  if (!status.state) return status;
  const { inline: _inline, ...state } = status.state;
  return { ...status, state };
}
