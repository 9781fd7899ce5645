import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/json.ts';
import type { Item } from './items.ts';

/** Names of a map and its sessions, which the same command with the same inputs gives again. */

/** Maximum length of the name of a map: the names of its sessions add a digest and a number to it. */
export const MAX_MAP_NAME = 40;
const DIGEST = 12;

/** Returns the name of a map that the user gives none; `settings` is all that its sessions share. */
export function mapName(settings: unknown): string {
  return `map-${digest(settings).slice(0, 8)}`;
}

/**
 * Returns the names of the sessions, by their items. A name depends on the settings and on the input, not on the line:
 * lines may be added, moved and removed between two calls. Equal inputs are numbered.
 */
export function sessionNames(map: string, settings: unknown, items: readonly Item[]): string[] {
  const shared = digest(settings);
  const seen = new Map<string, number>();
  return items.map(({ input }) => {
    const name = `${map}-${digest([shared, input]).slice(0, DIGEST)}`;
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return count === 1 ? name : `${name}-${count}`;
  });
}

const digest = (value: unknown) => createHash('sha256').update(canonicalJson(value)).digest('hex');
