import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { CachedSession, Problem } from '../world/world.ts';
import { parseQuantity } from './quantity.ts';

/** Resource requests and limits of a pod, by resource. */
export interface Resources {
  requests: Record<string, string>;
  limits: Record<string, string>;
}

type Given = SessionClassSpec['resources'];
type Spec = CachedSession['spec'];

const DEFAULTS: Resources = {
  requests: { cpu: '50m', memory: '128Mi' },
  limits: { cpu: '1', memory: '1Gi' },
};

/** The session's own amounts over its class's over the built-in ones. */
export function resourcesOf(spec: Spec, allowed: SessionClassSpec): Resources {
  return [allowed.resources, spec.resources].reduce(over, DEFAULTS);
}

/**
 * Merges a layer over the ones before. A request may not exceed its limit: an amount that the layer leaves out is
 * adjusted to the one that it sets.
 */
function over(before: Resources, given: Given): Resources {
  const requests = amounts(before.requests, given?.requests);
  const limits = amounts(before.limits, given?.limits);
  for (const resource of Object.keys(requests)) {
    if (!isAbove(requests[resource], limits[resource])) continue;
    if (given?.limits?.[resource as 'cpu']) requests[resource] = limits[resource] as string;
    else limits[resource] = requests[resource] as string;
  }
  return { requests, limits };
}

/** The problem with the amounts that a session sets. */
export function resourcesProblem({ resources }: Spec, { maxResources }: SessionClassSpec): Problem | undefined {
  for (const group of ['requests', 'limits'] as const) {
    for (const [resource, wanted] of Object.entries(resources?.[group] ?? {})) {
      // A request raises a limit that is not set, so it must also respect the ceiling of the limit.
      for (const ceilings of group === 'requests' ? (['requests', 'limits'] as const) : (['limits'] as const)) {
        const ceiling = maxResources?.[ceilings]?.[resource as 'cpu'];
        if (!isAbove(wanted, ceiling)) continue;
        return {
          reason: 'NotAllowed',
          message: `spec.resources.${group}.${resource}: ${wanted} is more than the ${ceiling} that the class allows${ceilings === group ? '' : ' as a limit'}; ask for less`,
        };
      }
    }
  }
  const message = aboveItsLimit(resources);
  return message === undefined ? undefined : { reason: 'InvalidSpec', message };
}

/** Error text for a request above a limit of the same layer: which of the two is meant is ambiguous. */
export function aboveItsLimit(given: Given): string | undefined {
  for (const [resource, request] of Object.entries(given?.requests ?? {})) {
    const limit = given?.limits?.[resource as 'cpu'];
    if (!isAbove(request, limit)) continue;
    return `spec.resources.requests.${resource}: ${request} is more than spec.resources.limits.${resource}, which is ${limit}; lower the request or raise the limit`;
  }
  return undefined;
}

function isAbove(amount: string | undefined, most: string | undefined): boolean {
  return Boolean(amount && most) && parseQuantity(amount as string) > parseQuantity(most as string);
}

function amounts(...layers: (Record<string, string | undefined> | undefined)[]): Record<string, string> {
  return Object.fromEntries(
    layers
      .flatMap((layer) => Object.entries(layer ?? {}))
      .filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
}
