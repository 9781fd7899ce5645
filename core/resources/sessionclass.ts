import * as z from 'zod';
import { agent } from './agent.ts';
import { resourceRequirements, timeouts } from './schema.ts';

/** What a Session may set itself; `agent.*` fields one by one. */
export const OVERRIDABLE = [
  'agent.driver',
  'agent.command',
  'agent.args',
  'agent.workingDir',
  'agent.env',
  'agent.input',
  'agent.result',
  'image',
  'resources',
  'timeouts',
] as const;

export const sessionClassSpec = z.strictObject({
  runner: z.enum(['Embedded']).default('Embedded').describe('Embedded: the image contains the runner.'),
  image: z.string().min(1).max(512).optional().describe('Default: the runner image of the installation.'),
  imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).optional(),
  imagePullSecrets: z
    .array(z.strictObject({ name: z.string().min(1).max(253) }))
    .max(16)
    .optional(),
  agent: agent.optional().describe('Defaults for the sessions of the class.'),
  resources: resourceRequirements.optional().describe('Default of the sessions’ resources.'),
  maxResources: resourceRequirements
    .optional()
    .describe('Ceiling of what a Session may ask for, for each amount given here.'),
  timeouts: timeouts.optional().describe('Defaults of the sessions’ time-outs.'),
  maxTimeouts: timeouts.optional().describe('Ceilings of the time-outs.'),
  limits: z
    .strictObject({
      maxRunning: z.int32().min(0).optional().describe('How many sessions of the class may have a pod at once.'),
    })
    .optional(),
  overrides: z
    .array(z.enum(OVERRIDABLE))
    .max(OVERRIDABLE.length)
    .meta({ 'x-kubernetes-list-type': 'set' })
    .default([])
    .describe('What a Session may set itself. Default: nothing.'),
  secrets: z
    .array(z.string().min(1).max(253))
    .max(64)
    .meta({ 'x-kubernetes-list-type': 'set' })
    .default([])
    .describe('Secrets of the session’s namespace that its agent.env may name; "*" allows all. Default: none.'),
});
export type SessionClassSpec = z.infer<typeof sessionClassSpec>;
