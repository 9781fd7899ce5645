import { isAbove } from './quantity.ts';
import type { Refusal } from './refusal.ts';
import type { SessionSpec } from './session.ts';
import type { SessionClassSpec } from './sessionclass.ts';

/** Checks of a session's resources, and of its workspace and history, against its class. */

type Spec = Partial<Omit<SessionSpec, 'input'>>;
type Resources = SessionClassSpec['resources'];

/** Returns the first amount of the session that is above a ceiling of its class, or above its own limit. */
export function tooLarge(spec: Spec, allowed: SessionClassSpec): Refusal | undefined {
  return resources(spec, allowed) ?? ownLimits(spec) ?? kept(spec, allowed);
}

function resources({ resources: own }: Spec, { maxResources }: SessionClassSpec): Refusal | undefined {
  const wanted = (['requests', 'limits'] as const).flatMap((group) =>
    Object.entries(own?.[group] ?? {}).map(([resource, amount]) => ({ group, resource, amount })),
  );
  for (const { group, resource, amount } of wanted) {
    // A request raises a limit that is not set, so it must also respect the ceiling of the limit.
    for (const ceilings of group === 'requests' ? (['requests', 'limits'] as const) : (['limits'] as const)) {
      const ceiling = maxResources?.[ceilings]?.[resource as 'cpu'];
      if (isAbove(amount, ceiling)) {
        return tooMuch(`spec.resources.${group}.${resource}`, amount, ceiling, ceilings === group ? '' : ' as a limit');
      }
    }
  }
  return undefined;
}

function ownLimits({ resources: own }: Spec): Refusal | undefined {
  const refused = requestAboveLimit(own);
  return refused && { reason: 'InvalidSpec', ...refused };
}

/** Returns the first request of a Session or a class that is above the limit beside it: either may be meant. */
export function requestAboveLimit(own: Resources): { field: string; message: string } | undefined {
  for (const [resource, request] of Object.entries(own?.requests ?? {})) {
    const limit = own?.limits?.[resource as 'cpu'];
    if (!isAbove(request, limit)) continue;
    return {
      field: `spec.resources.requests.${resource}`,
      message: `${request} is more than spec.resources.limits.${resource}, which is ${limit}; lower the request or raise the limit`,
    };
  }
  return undefined;
}

function kept({ persistence: own }: Spec, { persistence, maxPersistence }: SessionClassSpec): Refusal | undefined {
  if (isAbove(own?.maxState, maxPersistence?.maxState)) {
    return tooMuch('spec.persistence.maxState', own?.maxState, maxPersistence?.maxState);
  }
  const workspace = own?.workspace ?? persistence?.workspace;
  const size = workspace?.type === 'Volume' ? workspace.size : undefined;
  if (isAbove(size, maxPersistence?.workspaceSize)) {
    return tooMuch('spec.persistence.workspace.size', size, maxPersistence?.workspaceSize);
  }
  return undefined;
}

/** Returns the first setting of the session that needs a runner, if its class has none. */
export function runnerless({ persistence, timeouts }: Spec, { runner }: SessionClassSpec): Refusal | undefined {
  if (runner !== 'None') return undefined;
  if (persistence?.maxState || persistence?.state) {
    return {
      reason: 'InvalidSpec',
      field: `spec.persistence.${persistence.maxState ? 'maxState' : 'state'}`,
      message: 'is set, but with the class’s runner None nothing is stored between turns; leave it out',
    };
  }
  if (timeouts?.stall !== undefined) {
    return {
      reason: 'InvalidSpec',
      field: 'spec.timeouts.stall',
      message: 'is set, but with the class’s runner None nobody sees that a turn is silent; leave it out',
    };
  }
  return undefined;
}

/** Reports whether the state of the session is stored; the default where the class is not known is that it is. */
export function storesState(
  { persistence }: Pick<Spec, 'persistence'>,
  allowed: Pick<SessionClassSpec, 'runner' | 'persistence'> | undefined,
): boolean {
  if (allowed?.runner === 'None') return false;
  return persistence?.state ?? allowed?.persistence?.state ?? true;
}

/** Refuses a session that nothing would ever end: its pod is never taken for others, as its state would be lost. */
export function unbounded(spec: Spec, allowed: SessionClassSpec): Refusal | undefined {
  if (allowed.runner === 'None' || storesState(spec, allowed)) return undefined;
  if (spec.timeouts?.lifetime ?? allowed.timeouts?.lifetime ?? allowed.maxTimeouts?.lifetime) return undefined;
  return {
    reason: 'InvalidSpec',
    field: 'spec.timeouts.lifetime',
    message: 'is not set, and without persistence.state nothing else ends an idle session; set it, for example to 8h',
  };
}

function tooMuch(field: string, wanted: string | undefined, ceiling: string | undefined, as = ''): Refusal {
  const message = `${wanted} is more than the ${ceiling} that the class allows${as}; ask for less`;
  return { reason: 'NotAllowed', field, message };
}
