import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/json.ts';
import type { CachedSession } from '../observed/world.ts';

/**
 * SHA-256, hex, of the session's own settings that its pod gets once, when it is made or bound: edits of these count from the
 * next pod on. Edits of all other fields count at once, from the next turn on, or are refused. A field that a session does
 * not set leaves the digest as it is, so that a field of a later release does.
 */
export function settingsDigest({ agent, image, resources, persistence, environment }: CachedSession['spec']): string {
  const settings = Object.entries({ agent, image, resources, persistence, environment });
  const set = settings.filter(([, value]) => value !== undefined);
  return createHash('sha256')
    .update(canonicalJson(Object.fromEntries(set)))
    .digest('hex');
}
