import { isForbidden } from '../../core/kube/errors.ts';

/** Result of a check of an installation. */
export interface Finding {
  /** Name of the check, one word. */
  check: string;
  /** ok: as it should be. warning: look at it. error: something does not work. skipped: the caller could not look. */
  level: 'ok' | 'warning' | 'error' | 'skipped';
  /** The fact, as one line. */
  message: string;
  /** Advice: what to do about it. */
  act?: string;
}

/** A finding without the name of its check, which those who run the check add. */
export type Found = Omit<Finding, 'check'>;

export const ok = (message: string): Found => ({ level: 'ok', message });
export const warning = (message: string, act: string): Found => ({ level: 'warning', message, act });
export const error = (message: string, act: string): Found => ({ level: 'error', message, act });
export const skipped = (message: string): Found => ({ level: 'skipped', message });

/** A check cannot look, because the caller lacks a right or because the cluster has nothing to look at. */
export class Skipped extends Error {}

/** Resolves as the read does; rejects with a Skipped that names the right where the caller lacks it. */
export async function needing<T>(right: string, read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (error) {
    throw isForbidden(error) ? new Skipped(`you may not ${right}`) : error;
  }
}

/** Returns the first names of a list, and how many there are beside them. */
export function some(names: readonly string[], most = 3): string {
  const rest = names.length - most;
  return rest > 0 ? `${names.slice(0, most).join(', ')} and ${rest} more` : names.join(', ');
}
