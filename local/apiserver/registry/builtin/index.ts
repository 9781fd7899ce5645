import { definitions } from '../crd/definition.ts';
import type { ResourceType } from '../types.ts';
import { admissionResources } from './admission.ts';
import { coreResources } from './core.ts';
import { events } from './events.ts';
import { networkPolicies } from './networking.ts';
import { pods } from './pods.ts';
import { rbacResources } from './rbac.ts';

/** Built-in resources, served from the start. */
export const builtinResources: ResourceType[] = [
  ...coreResources,
  ...rbacResources,
  ...admissionResources,
  networkPolicies,
  events,
  pods,
  definitions,
];
