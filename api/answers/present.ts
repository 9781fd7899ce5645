/** Converts Kubernetes objects to the form that the API returns. */

import { defined } from '../../core/defined.ts';
import { tooDeepAt } from '../../core/depth.ts';
import type { StoredApproval, StoredSession, StoredTurn } from '../../core/resources/kinds.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import type { Shown } from '../openapi/schemas.ts';

/** Annotation of kubectl that contains the whole object. */
const HIDDEN_ANNOTATIONS = new Set(['kubectl.kubernetes.io/last-applied-configuration']);

const TOO_DEEP = '(nested too deep to be shown)';

export function showSession({ metadata, spec, status }: StoredSession): object {
  const input = showJson(spec.input);
  return {
    metadata: showMeta(metadata),
    spec: input === undefined ? spec : { ...spec, input },
    ...(status ? { status: withoutSealed(status) } : {}),
  };
}

/** The session as a list has it: without its input, and of its spec only what no spec lacks unless `specs`. */
export function listedSession({ metadata, spec, status }: StoredSession, specs: boolean): object {
  const { input: _input, ...rest } = spec;
  const { class: className, turns, suspend } = spec;
  return {
    metadata: showMeta(metadata),
    spec: specs ? rest : { class: className, turns, suspend },
    ...(status ? { status: withoutSealed(status) } : {}),
  };
}

export function showTurn({ metadata, spec, status }: StoredTurn): object {
  const shown = { ...spec, ...(spec.input === undefined ? {} : { input: showJson(spec.input) }) };
  return {
    metadata: showMeta(metadata),
    spec: shown,
    ...(status ? { status: withoutSealed(withRequestId(status)) } : {}),
  };
}

/** The turn as a list has it: without input, output and text of the log, and of its spec only what no spec lacks unless `specs`. */
export function listedTurn({ metadata, spec, status }: StoredTurn, specs: boolean): object {
  const { input: _input, ...rest } = spec;
  const shown = { metadata: showMeta(metadata), spec: specs ? rest : { session: spec.session, cancel: spec.cancel } };
  if (!status) return shown;
  const { output: _output, log, ...short } = withoutSealed(withRequestId(status));
  const { inline: _inline, ...logFacts } = log ?? {};
  return { ...shown, status: { ...short, ...(log ? { log: logFacts } : {}) } };
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
