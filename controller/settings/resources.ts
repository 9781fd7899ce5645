import { isAbove } from '../../core/resources/quantity.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { CachedSession } from '../observed/world.ts';

/** Resource requests and limits of a pod, by resource. */
export interface Resources {
  requests: Record<string, string>;
  limits: Record<string, string>;
}

type Given = SessionClassSpec['resources'];
type Spec = CachedSession['spec'];

/** Amounts of a pod where neither the session nor its class sets one. */
export const DEFAULT_RESOURCES: Resources = {
  // The API server sets a request that is missing to the limit, which would reserve all of it on the node.
  requests: { cpu: '50m', memory: '128Mi', 'ephemeral-storage': '64Mi' },
  limits: { cpu: '1', memory: '1Gi', 'ephemeral-storage': '2Gi' },
};

/** The session's own amounts over its class's over the built-in ones. */
export function resourcesOf(spec: Spec, allowed: SessionClassSpec): Resources {
  return [allowed.resources, spec.resources].reduce(over, DEFAULT_RESOURCES);
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

function amounts(...layers: (Record<string, string | undefined> | undefined)[]): Record<string, string> {
  return Object.fromEntries(
    layers
      .flatMap((layer) => Object.entries(layer ?? {}))
      .filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
}
