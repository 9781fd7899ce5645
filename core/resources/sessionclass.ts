import * as z from 'zod';
import { HEURISTICS } from '../text/hidden.ts';
import { agent } from './agent.ts';
import { network } from './network.ts';
import { OVERRIDABLE } from './overridable.ts';
import { podTemplate } from './pod-template.ts';
import { retention } from './retention.ts';
import { processLimits } from './sandbox.ts';
import {
  count,
  duration,
  labelSelector,
  maxTimeouts,
  persistence,
  quantity,
  resourceRequirements,
  rules,
  timeouts,
} from './schema.ts';

const marker = () =>
  z
    .string()
    .min(8)
    .max(256)
    .regex(/^[!-~]+$/, 'must be printable ASCII without spaces');

export const sessionClassSpec = z
  .strictObject({
    runner: z
      .enum(['Embedded', 'Injected', 'None'])
      .default('Embedded')
      .describe(
        'Embedded: the image contains the runner. Injected: any image; an init container brings the runner. None: any image as it is; a pod for every turn, and the result is what its log has between the markers. Default Embedded.',
      ),
    resultMarkers: z
      .strictObject({
        start: marker().describe('What stands before the result.'),
        end: marker().describe('What stands after it.'),
      })
      .optional()
      .describe(
        'With runner None: what stands before and after the result. Default <<<BERTH_RESULT_START>>> and <<<BERTH_RESULT_END>>>.',
      ),
    image: z
      .string()
      .min(1)
      .max(512)
      .optional()
      .describe('Default with runner Embedded: the runner image of the installation, see runnerImage.'),
    runnerImage: z
      .enum(['Default', 'Python'])
      .optional()
      .describe(
        'With runner Embedded and no image: which runner image of the installation is run. Python: the one with Python 3. Default Default.',
      ),
    imagePullPolicy: z
      .enum(['Always', 'IfNotPresent', 'Never'])
      .optional()
      .describe('As in a pod. Default: Always for the tag latest or none, else IfNotPresent.'),
    imagePullSecrets: z
      .array(z.strictObject({ name: z.string().min(1).max(253).describe('The Secret’s name.') }))
      .max(16)
      .optional()
      .describe('Secrets of the session’s namespace that its images are pulled with.'),
    agent: agent.optional().describe('Defaults for the sessions of the class.'),
    resources: resourceRequirements.optional().describe('Default of the sessions’ resources.'),
    maxResources: resourceRequirements
      .optional()
      .describe('Ceiling of what a Session may ask for, for each amount given here.'),
    timeouts: timeouts.optional().describe('Defaults of the sessions’ timeouts.'),
    maxTimeouts: maxTimeouts.optional().describe('Ceilings of the sessions’ timeouts.'),
    persistence: persistence.optional().describe('Default of what outlives the sessions’ pods.'),
    maxPersistence: z
      .strictObject({
        maxState: quantity().optional().describe('Ceiling of persistence.maxState, and its default.'),
        workspaceSize: quantity().optional().describe('Ceiling of persistence.workspace.size; 0 allows no volume.'),
      })
      .optional()
      .describe('Ceilings of what a Session may keep.'),
    ...retention,
    ...podTemplate,
    sandbox: z
      .strictObject({
        ...processLimits,
        network: network.optional().describe('What the sessions’ pods may reach. Default: nothing.'),
        readOnlyRootFilesystem: z
          .boolean()
          .optional()
          .describe(
            'Whether the image’s files are read-only; HOME, /tmp, work and state are always writable. Default true.',
          ),
      })
      .optional()
      .describe('What the sessions’ agents are kept from.'),
    redact: z
      .array(z.string().min(1).max(512))
      .max(16)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .optional()
      .describe(
        'Patterns of what must not show in logs, outputs, events and errors, besides the values of secrets: docs/sandbox.md.',
      ),
    redaction: z
      .strictObject({
        heuristics: z
          .enum(HEURISTICS)
          .default('ErrorsAndLogs')
          .describe(
            'Where what only looks like a secret (key=…, token=…, secret=…, password=…, Bearer …, sk-…) is hidden. Everything includes outputs and events, which alters results. Off: nowhere. Default ErrorsAndLogs.',
          ),
      })
      .optional()
      .describe('How what must not show is hidden. Values of secrets and the patterns of redact always are.'),
    namespaceSelector: labelSelector
      .optional()
      .describe('The namespaces whose Sessions may name the class, by their labels. Default: all.'),
    limits: z
      .strictObject({
        maxRunning: z.int32().min(0).optional().describe('How many sessions of the class may have a pod at once.'),
        namespaces: z
          .array(
            z.strictObject({
              selector: labelSelector.describe('Of Namespaces, by their labels; an empty one selects all.'),
              maxRunning: z
                .int32()
                .min(0)
                .describe('How many sessions of the class may have a pod at once in each of them.'),
            }),
          )
          .max(32)
          .meta({ 'x-kubernetes-list-type': 'atomic' })
          .optional()
          .describe('Limits for single namespaces; where several select a namespace the lowest counts.'),
      })
      .optional()
      .describe('How many run at once. A lower limit ends nothing that runs: nothing more is started until it is met.'),
    approvalWindow: duration()
      .optional()
      .describe(
        'How long a session that waits for an approval keeps its pod when others wait for capacity and no idle one can be preempted. Default 1h.',
      ),
    minIdle: count()
      .optional()
      .describe('So many idle sessions of the class keep their pods, also when others wait for capacity. Default 0.'),
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
      .describe(
        'Secrets of the session’s namespace that its agent.env and agent.secretFiles may name; "*" allows all. Default: none.',
      ),
  })
  .meta(
    rules(
      {
        rule: "self.runner == 'None' || !has(self.resultMarkers)",
        message: 'only runner None finds results by these markers; leave them out',
        fieldPath: '.resultMarkers',
      },
      {
        rule: '!has(self.resultMarkers) || self.resultMarkers.start != self.resultMarkers.end',
        message: 'start and end must differ',
        fieldPath: '.resultMarkers',
      },
      {
        rule: "self.runner != 'None' || !has(self.sandbox) || (!has(self.sandbox.preset) && !has(self.sandbox.limits))",
        message:
          'with runner None nobody sets limits of processes; leave preset and limits out, resources.limits counts',
        fieldPath: '.sandbox',
      },
      {
        rule: "self.runner != 'None' || !has(self.timeouts) || !has(self.timeouts.stall)",
        message: 'with runner None nobody sees that a turn is silent; leave stall out',
        fieldPath: '.timeouts',
      },
      {
        rule: "self.runner == 'Embedded' || has(self.image)",
        message: 'with this runner there is no default; set the image of the agent',
        fieldPath: '.image',
      },
      {
        rule: "!has(self.runnerImage) || (self.runner == 'Embedded' && !has(self.image))",
        message: 'it chooses the default of image, which counts here; leave runnerImage out',
        fieldPath: '.runnerImage',
      },
      {
        rule: "self.runner == 'None' || !has(self.persistence) || !has(self.persistence.state) || self.persistence.state || (has(self.timeouts) && has(self.timeouts.lifetime))",
        message: 'without a state nothing ends an idle session; set timeouts.lifetime too',
        fieldPath: '.persistence',
      },
    ),
  );
export type SessionClassSpec = z.infer<typeof sessionClassSpec>;
