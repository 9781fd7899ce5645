import type { ArtifactLimits } from '../../core/frames/messages.ts';
import { DEFAULT_ARTIFACT_BYTES, DEFAULT_ARTIFACT_FILES } from '../../core/resources/limits.ts';
import { parseQuantity } from '../../core/resources/quantity.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';

/** Limits of the artifacts of a turn: those of the class, where it sets them. */
export function artifactLimits({ artifacts = {} }: Pick<SessionClassSpec, 'artifacts'>): ArtifactLimits {
  const { maxBytes, maxFiles = DEFAULT_ARTIFACT_FILES } = artifacts;
  return { maxBytes: maxBytes === undefined ? DEFAULT_ARTIFACT_BYTES : Math.floor(parseQuantity(maxBytes)), maxFiles };
}
