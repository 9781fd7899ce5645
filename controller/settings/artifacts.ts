import type { ArtifactLimits } from '../../core/frames/messages.ts';
import { DEFAULT_ARTIFACT_BYTES, DEFAULT_ARTIFACT_FILES, MAX_ARTIFACT_BYTES } from '../../core/resources/limits.ts';
import { parseQuantity } from '../../core/resources/quantity.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';

/** Limits of the artifacts of a turn: those of the class, and never more than Berth can store. */
export function artifactLimits({ artifacts = {} }: Pick<SessionClassSpec, 'artifacts'>): ArtifactLimits {
  const { maxBytes, maxFiles = DEFAULT_ARTIFACT_FILES } = artifacts;
  const bytes = maxBytes === undefined ? DEFAULT_ARTIFACT_BYTES : parseQuantity(maxBytes);
  return { maxBytes: Math.min(Math.floor(bytes), MAX_ARTIFACT_BYTES), maxFiles };
}
