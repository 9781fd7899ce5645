import * as z from 'zod';
import { HEURISTICS } from '../text/hidden.ts';
import { agent } from './agent.ts';
import { MAX_ARTIFACT_FILES } from './limits.ts';
import { network } from './network.ts';
import { OVERRIDABLE } from './overridable.ts';
import { podTemplate } from './pod-template.ts';
import { retention } from './retention.ts';
import { PROTECTIONS, processLimits } from './sandbox.ts';
import {
  count,
  duration,
  imageReference,
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

/** What a class without a word on the network has, so that its table says so. */
const NO_NETWORK = { mode: 'None' };

export const sessionClassSpec = z
  .strictObject({
    runner: z
      .enum(['Embedded', 'Injected', 'None'])
      .default('Embedded')
      .describe(
        'Way in which the runner gets into the pod. Embedded: the image contains it. Injected: an init container copies it, so any image works. None: no runner; any image runs unchanged, in one pod for every turn, and the result is what the pod’s log has between the markers. Default Embedded.',
      ),
    resultMarkers: z
      .strictObject({
        start: marker().describe('Marker before the result.'),
        end: marker().describe('Marker after the result.'),
      })
      .optional()
      .describe(
        'Markers around the result with runner None. Default <<<BERTH_RESULT_START>>> and <<<BERTH_RESULT_END>>>.',
      ),
    image: imageReference()
      .optional()
      .describe(
        'Image of the pods. Default with runner Embedded: the runner image of the installation, see runnerImage.',
      ),
    runnerImage: z
      .enum(['Default', 'Python'])
      .optional()
      .describe(
        'Runner image of the installation that pods run, with runner Embedded and no image. Python: the one with Python 3. Default Default.',
      ),
    imagePullPolicy: z
      .enum(['Always', 'IfNotPresent', 'Never'])
      .optional()
      .describe('Pull policy as in a pod. Default: Always for the tag latest or no tag, else IfNotPresent.'),
    imagePullSecrets: z
      .array(z.strictObject({ name: z.string().min(1).max(253).describe('Name of the Secret.') }))
      .max(16)
      .optional()
      .describe('Image pull Secrets, in the session’s namespace.'),
    agent: agent.optional().describe('Defaults for the sessions of the class.'),
    resources: resourceRequirements.optional().describe('Default resources of sessions.'),
    maxResources: resourceRequirements
      .optional()
      .describe('Ceilings of the resources of sessions. An amount that is not set here has no ceiling.'),
    timeouts: timeouts.optional().describe('Default timeouts of sessions.'),
    maxTimeouts: maxTimeouts.optional().describe('Ceilings of the timeouts of sessions.'),
    persistence: persistence.optional().describe('Default for what sessions keep when their pods go.'),
    maxPersistence: z
      .strictObject({
        maxState: quantity().optional().describe('Ceiling and default of persistence.maxState.'),
        workspaceSize: quantity().optional().describe('Ceiling of persistence.workspace.size; 0 allows no volume.'),
      })
      .optional()
      .describe('Ceilings of what sessions may keep.'),
    artifacts: z
      .strictObject({
        maxBytes: quantity()
          .optional()
          .describe('Maximum size of the files together, for example 1Mi. Default 4Mi; at most 16Mi.'),
        maxFiles: z.int32().min(1).max(MAX_ARTIFACT_FILES).optional().describe('Maximum number of files. Default 64.'),
      })
      .optional()
      .describe(
        'Limits of what a turn may leave in BERTH_OUTPUT_DIR. A turn that leaves more fails: docs/artifacts.md.',
      ),
    ...retention,
    ...podTemplate,
    sandbox: z
      .strictObject({
        ...processLimits,
        network: network
          .optional()
          .meta({ default: NO_NETWORK })
          .describe('Destinations that session pods may reach. Default: none.'),
        readOnlyRootFilesystem: z
          .boolean()
          .optional()
          .describe(
            'Makes the image’s files read-only. HOME, /tmp, the working directory and the state directory are always writable. Default true.',
          ),
        scratch: z
          .enum(['Volumes', 'Image'])
          .optional()
          .describe(
            'Place of HOME, /tmp, the working directory and the state directory: two emptyDir volumes (Volumes) or the container’s writable layer (Image). Image makes a cold start faster. It needs readOnlyRootFilesystem: false, runner Embedded, and an image whose user 65532 may write to /berth and /tmp. A node with a separate disk for images does not limit it: docs/sandbox.md. Default Volumes.',
          ),
        require: z
          .array(z.enum(PROTECTIONS))
          .max(PROTECTIONS.length)
          .meta({ 'x-kubernetes-list-type': 'set' })
          .optional()
          .describe(
            `Protections without which a pod gets no turn, of ${PROTECTIONS.join(' and ')}: the waiting turns fail, and the pod is deleted. The runner reports them as conditions of the Session. Guards against mistakes: a hostile image can report what it likes. Default: none.`,
          ),
      })
      .optional()
      .meta({ default: { network: NO_NETWORK } })
      .describe('Restrictions on the agents of sessions. Default: no network.'),
    redact: z
      .array(z.string().min(1).max(512))
      .max(16)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .optional()
      .describe(
        'Patterns of text to hide in logs, outputs, events and errors, in addition to values of Secrets: docs/sandbox.md.',
      ),
    redaction: z
      .strictObject({
        heuristics: z
          .enum(HEURISTICS)
          .default('ErrorsAndLogs')
          .describe(
            'Places in which text that only looks like a secret (key=…, token=…, secret=…, password=…, Bearer …, sk-…) is hidden. ErrorsAndLogs: in errors and logs. Everything: also in outputs and events, which alters results. Off: nowhere. Default ErrorsAndLogs.',
          ),
      })
      .optional()
      .describe(
        'Redaction of text that looks like a secret. Values of Secrets and the patterns of redact are always hidden.',
      ),
    environments: z
      .strictObject({
        index: z
          .string()
          .max(1024)
          .regex(/^https?:\/\/[^\s@$]+$/, 'must be an http or https URL without credentials')
          .optional()
          .describe('Simple index of packages. Default: uv’s default, the public index.'),
        credentials: z
          .strictObject({
            name: z
              .string()
              .min(1)
              .max(253)
              .describe('Name of a Secret of the session’s namespace, with username and password.'),
          })
          .optional()
          .describe('Secret with the credentials for the index. Only the steps that use the index get them.'),
        certificates: z
          .strictObject({
            name: z
              .string()
              .min(1)
              .max(253)
              .describe('Name of a Secret of the session’s namespace, with the key ca.crt.'),
          })
          .optional()
          .describe('Certificates (PEM) that are trusted for the index, besides those that the image trusts.'),
        cache: z
          .strictObject({
            claim: z
              .string()
              .min(1)
              .max(253)
              .describe(
                'Name of a PersistentVolumeClaim of the session’s namespace. Builds on several nodes need ReadWriteMany.',
              ),
          })
          .optional()
          .describe('Volume with the downloads of earlier builds. Default: none. The embedded cluster has none.'),
        sourceDistributions: z
          .boolean()
          .optional()
          .describe(
            'Builds packages without a wheel from source. Their build programs run in the pod of the build and can read the index’s credentials. Default: false.',
          ),
      })
      .optional()
      .describe('Settings for building Environments of the class: docs/environments.md.'),
    namespaceSelector: labelSelector
      .optional()
      .describe('Namespaces whose Sessions may name the class, by labels. Default: all.'),
    limits: z
      .strictObject({
        maxRunning: z
          .int32()
          .min(0)
          .optional()
          .describe('Maximum number of sessions of the class that have a pod at the same time.'),
        namespaces: z
          .array(
            z.strictObject({
              selector: labelSelector.describe('Selects Namespaces by labels; an empty selector selects all.'),
              maxRunning: z
                .int32()
                .min(0)
                .describe(
                  'Maximum number of sessions of the class that have a pod at the same time, in each of these namespaces.',
                ),
            }),
          )
          .max(32)
          .meta({ 'x-kubernetes-list-type': 'atomic' })
          .optional()
          .describe('Limits per namespace. If several entries select a namespace, the lowest limit applies.'),
        maxQueuedTurns: z
          .int32()
          .min(1)
          .optional()
          .describe('Maximum number of turns of one session that wait. Another one ends as QueueFull. Default 256.'),
      })
      .optional()
      .describe(
        'Limits on running sessions and waiting turns. A lowered limit ends none of them; it counts for new ones.',
      ),
    approvalWindow: duration()
      .optional()
      .describe(
        'Time that a session waits for an approval until it may be preempted, if no idle session can be preempted. Default 1h.',
      ),
    selfApproval: z
      .enum(['Allowed', 'Refused'])
      .optional()
      .describe(
        'Whether the users who asked for a turn, the requesters of the Turn and of its Session, may decide on its requests. Refused: somebody else has to, and every Turn that asks and every Approval has to name its requester. Default Allowed.',
      ),
    minIdle: count().optional().describe('Number of idle sessions of the class that are never preempted. Default 0.'),
    overrides: z
      .array(z.enum(OVERRIDABLE))
      .max(OVERRIDABLE.length)
      .meta({ 'x-kubernetes-list-type': 'set' })
      .default([])
      .describe(`Fields that a Session may set: ${OVERRIDABLE.join(', ')}. Default: none.`),
    secrets: z
      .array(z.string().min(1).max(253))
      .max(64)
      .meta({ 'x-kubernetes-list-type': 'set' })
      .default([])
      .describe(
        'Secrets of the session’s namespace that a Session may name in agent.env and agent.secretFiles; "*" allows all. Default: none.',
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
        rule: "self.runner != 'None' || !has(self.sandbox) || !has(self.sandbox.require) || size(self.sandbox.require) == 0",
        message: 'with runner None nobody reports protections; leave require out',
        fieldPath: '.sandbox',
      },
      {
        rule: "!has(self.sandbox) || !has(self.sandbox.scratch) || self.sandbox.scratch != 'Image' || (self.runner == 'Embedded' && has(self.sandbox.readOnlyRootFilesystem) && !self.sandbox.readOnlyRootFilesystem)",
        message: 'scratch Image needs runner Embedded and readOnlyRootFilesystem: false; set them, or use Volumes',
        fieldPath: '.sandbox',
      },
      {
        rule: "self.runner != 'None' || !has(self.artifacts)",
        message: 'with runner None nobody collects artifacts; leave artifacts out',
        fieldPath: '.artifacts',
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
