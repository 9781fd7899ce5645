import type { ArtifactLimits, Limits } from '../../core/frames/messages.ts';
import { sessionRefusal } from '../../core/resources/allowed.ts';
import { DEFAULT_TIMEOUTS } from '../../core/resources/defaults.ts';
import type { StoredSessionClass } from '../../core/resources/kinds.ts';
import { selects } from '../../core/resources/label-selector.ts';
import { DEFAULT_ARTIFACT_BYTES, DEFAULT_ARTIFACT_FILES, MAX_ENVIRONMENT_BYTES } from '../../core/resources/limits.ts';
import { parseQuantity } from '../../core/resources/quantity.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import type { Heuristics } from '../../core/text/hidden.ts';
import type { CachedSession, Installation, Problem } from '../observed/world.ts';
import { type AgentSettings, agentSettings } from './agent.ts';
import { buildCache, builderAgent, exposedCredentials } from './builder.ts';
import { type ImageSettings, imageSettings } from './image.ts';
import { type Kept, keptOf } from './persistence.ts';
import { type PodTemplate, podTemplate } from './pod-template.ts';
import { type Resources, resourcesOf } from './resources.ts';
import { classProblem, limitsOf } from './sandbox.ts';
import { toMs } from './timeouts.ts';
import { proxyVariables, workspaceVariables } from './variables.ts';

/** The effective settings of a session: its own over its class's over the built-in ones. */
export interface Effective extends AgentSettings, ImageSettings {
  imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  imagePullSecrets: { name: string }[];
  resources: Resources;
  kept: Kept;
  /** The session builds an environment: its pod has uv. */
  builds: boolean;
  /** Claim of the volume with uv's cache, if the session builds and its class has one. */
  buildCache: string | undefined;
  template: PodTemplate;
  /** Limits of the agent's processes. */
  limits: Limits;
  /** Limits of what a turn may leave in BERTH_OUTPUT_DIR. */
  artifacts: ArtifactLimits;
  /** Patterns of secrets to redact. */
  redact: string[];
  /** Outputs in which text that looks like a secret is redacted; undefined: the runner's default. */
  heuristics: Heuristics | undefined;
}

export const DEFAULT_START_MS = toMs(DEFAULT_TIMEOUTS.start);

type Spec = CachedSession['spec'];

/** The effective settings, or the problem with them, named by the user's own fields. */
export function effective(
  session: CachedSession,
  sessionClass: StoredSessionClass | undefined,
  installation: Installation,
  namespaceLabels?: Readonly<Record<string, string>>,
): Effective | Problem {
  const { spec } = session;
  if (!sessionClass) {
    return {
      reason: 'ClassNotFound',
      message: `spec.class: there is no SessionClass "${spec.class}"; create it, or create a Session with one of \`kubectl get sessionclasses\``,
    };
  }
  const allowed = sessionClass.spec;
  const problem =
    otherNamespace(session, allowed, namespaceLabels) ??
    refusedSetting(spec, allowed) ??
    classProblem(allowed) ??
    (spec.build && exposedCredentials(spec, allowed));
  if (problem) return { ...problem, message: `${problem.message} (class "${spec.class}")` };

  const kept = keptOf(spec, sessionClass);
  const given = [...proxyVariables(allowed), ...workspaceVariables(kept.workspace)];
  const run = spec.build
    ? agentSettings({}, builderAgent(allowed, installation), given, allowed.runner)
    : agentSettings(spec.agent ?? {}, allowed.agent ?? {}, given, allowed.runner);
  if ('reason' in run) return { ...run, message: `${run.message} (class "${spec.class}")` };
  const image = imageSettings(spec, allowed, installation);
  if ('reason' in image) return { ...image, message: `${image.message} (class "${spec.class}")` };
  return {
    ...image,
    ...(allowed.imagePullPolicy ? { imagePullPolicy: allowed.imagePullPolicy } : {}),
    imagePullSecrets: allowed.imagePullSecrets ?? [],
    ...run,
    resources: resourcesOf(spec, allowed),
    kept: spec.build ? { state: true, maxPackedBytes: MAX_ENVIRONMENT_BYTES } : kept,
    builds: spec.build !== undefined,
    buildCache: spec.build && buildCache(allowed.environments, installation.imagesArePrograms),
    template: podTemplate(allowed),
    limits: limitsOf(run.agent.driver, allowed.sandbox),
    artifacts: artifactLimits(allowed),
    redact: allowed.redact ?? [],
    heuristics: allowed.redaction?.heuristics,
  };
}

export function isProblem(value: Effective | Problem): value is Problem {
  return 'reason' in value;
}

/**
 * Problem when the class is not for the session's namespace. Unknown labels forbid nothing: no session of the class is
 * admitted before they are known.
 */
function otherNamespace(
  { metadata }: CachedSession,
  { namespaceSelector }: SessionClassSpec,
  labels: Readonly<Record<string, string>> | undefined,
): Problem | undefined {
  if (!namespaceSelector || !labels || selects(namespaceSelector, labels)) return undefined;
  return {
    reason: 'NotAllowed',
    message: `spec.class: the class is not for namespace "${metadata.namespace}"; name another class, or have the namespace labelled as the class's spec.namespaceSelector asks`,
  };
}

function refusedSetting(spec: Spec, allowed: SessionClassSpec): Problem | undefined {
  const refused = sessionRefusal(spec, allowed);
  return refused && { reason: refused.reason, message: `${refused.field}: ${refused.message}` };
}

/** Limits of the artifacts of a turn: those of the class, where it sets them. */
function artifactLimits({ artifacts = {} }: Pick<SessionClassSpec, 'artifacts'>): ArtifactLimits {
  const { maxBytes, maxFiles = DEFAULT_ARTIFACT_FILES } = artifacts;
  return { maxBytes: maxBytes === undefined ? DEFAULT_ARTIFACT_BYTES : Math.floor(parseQuantity(maxBytes)), maxFiles };
}
