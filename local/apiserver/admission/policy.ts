import type { Rbac } from '../auth/rbac.ts';
import type { ApiObject, Json } from '../object.ts';
import { celUntyped } from '../validation/cel-values.ts';
import { Authorizer } from './authorizer.ts';
import { evaluate } from './expressions.ts';
import { type AdmissionRequest, requestVariable } from './request.ts';
import type { NamedExpression, Policy, Validation } from './types.ts';

/** A denial by a policy. `reason` is a reason of Status. */
export interface Denial {
  message: string;
  reason: string;
}

/**
 * Evaluates a policy that matches the request; returns its first denial. An expression that cannot be evaluated denies
 * unless the failure policy is Ignore. `namespace` is the request's Namespace.
 */
export function denialOf(
  { spec }: Policy,
  request: AdmissionRequest,
  namespace: ApiObject | undefined,
  rbac: Rbac,
): Denial | undefined {
  const { object, oldObject } = request;
  const given = {
    object: celUntyped(object ?? null),
    oldObject: celUntyped(oldObject ?? null),
    request: requestVariable(request),
    namespaceObject: celUntyped(namespace ? visibleNamespace(namespace) : null),
  };
  const authorizer = new Authorizer(rbac, request.user);
  const validated: Json = { ...given, authorizer };
  validated.variables = lazily(spec.variables ?? [], validated);
  try {
    if (!conditionsHold(spec.matchConditions ?? [], { ...given, authorizer })) return undefined;
  } catch (error) {
    return onError(spec, error);
  }
  for (const validation of spec.validations ?? []) {
    try {
      if (evaluate(validation.expression ?? '', 'validation', validated) === true) continue;
    } catch (error) {
      const denial = onError(spec, error);
      if (denial) return denial;
      continue;
    }
    const message = messageOf(validation, { ...given, variables: validated.variables });
    return { message, reason: validation.reason ?? 'Invalid' };
  }
  return undefined;
}

const onError = ({ failurePolicy }: Policy['spec'], error: unknown): Denial | undefined =>
  failurePolicy === 'Ignore' ? undefined : { message: (error as Error).message, reason: 'Invalid' };

/** Reports whether all conditions hold. One that is false counts more than one that cannot be evaluated. */
function conditionsHold(conditions: NamedExpression[], variables: Json): boolean {
  let failed: unknown;
  for (const { expression = '' } of conditions) {
    try {
      if (evaluate(expression.trim(), 'condition', variables) === false) return false;
    } catch (error) {
      failed ??= error;
    }
  }
  if (failed) throw failed;
  return true;
}

/** Returns the CEL variable `variables`, whose values are computed when an expression first asks for them. */
function lazily(definitions: NamedExpression[], scope: Json): Json {
  const variables: Json = {};
  for (const { name = '', expression = '' } of definitions) {
    Object.defineProperty(variables, name, {
      enumerable: true,
      configurable: true,
      get() {
        const value = evaluate(expression, 'validation', scope);
        Object.defineProperty(variables, name, { enumerable: true, value });
        return value;
      },
    });
  }
  return variables;
}

const MAX_MESSAGE_BYTES = 5 * 1024;

/** Returns the message for people: of the messageExpression, else of `message`, else the expression itself. */
function messageOf({ expression = '', message, messageExpression }: Validation, variables: Json): string {
  if (messageExpression) {
    try {
      const text = evaluate(messageExpression, 'message', variables);
      const trimmed = typeof text === 'string' ? text.trim() : '';
      if (trimmed && Buffer.byteLength(trimmed) <= MAX_MESSAGE_BYTES && !trimmed.includes('\n')) return trimmed;
    } catch {
      // The API server falls back to `message` too.
    }
  }
  return message?.trim() || `failed expression: ${expression.trim()}`;
}

/** Returns the fields of a Namespace that policies see. */
function visibleNamespace({ metadata, spec, status }: ApiObject): Json {
  const { ownerReferences: _owners, managedFields: _fields, ...visible } = metadata;
  return { metadata: visible, spec, status };
}
