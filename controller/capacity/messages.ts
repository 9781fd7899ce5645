import type { Limit } from './limits.ts';
import type { Holder } from './slot-usage.ts';
import { smallest } from './smallest.ts';
import type { Space } from './tally.ts';

/** Messages for sessions that wait. */

/** Name and age of a session that holds a slot. */
export interface NamedHolder {
  /** `namespace/name` of the session, or of a pod whose session is not known. */
  name: string;
  since: string;
}

/** Maximum holders named in a message: enough to know whom to ask. */
const NAMED = 3;

/** Sessions that have held their slots longest. */
export function firstOf(holders: Iterable<Holder>): NamedHolder[] {
  const byAge = (a: Holder, b: Holder) => a.since - b.since || (a.name < b.name ? -1 : 1);
  return smallest(holders, NAMED, byAge).map(({ name, since }) => ({ name, since: new Date(since).toISOString() }));
}

/** Message that names the limit, its slots and some of their holders. */
export function fullMessage({ scope, slots }: Limit, space: Space, taken: number, named: NamedHolder[]): string {
  const of = {
    Installation: 'of the installation',
    Class: `of class "${space.class}"`,
    Namespace: `of class "${space.class}" in namespace "${space.namespace}"`,
  }[scope];
  if (slots === 0) return `There are no running slots ${of}: the limit is 0.`;
  const which = taken > slots ? `${taken} are taken of the ${slots} running slots` : `All ${slots} running slots`;
  const verb = taken > slots ? '' : ' are taken';
  if (named.length === 0) return `${which} ${of}${verb}.`;
  const held = named.map(({ name, since }) => `${name} (since ${since})`).join(', ');
  const more = taken > named.length ? ` and ${taken - named.length} more` : '';
  return `${which} ${of}${verb}, held by ${held}${more}.`;
}

export const COMES_LATER = 'Slots become free, but sessions that are served before this one wait for them.';

/**
 * Message for a namespace that cannot be read: its sessions wait. Sessions of other namespaces go on, with this
 * namespace's slots counted as last observed.
 */
export function namespaceUnreadable(namespace: string, why: string): string {
  return `Namespace "${namespace}" cannot be read, so the session waits: ${why}. See that it exists and that the controller has its rights there.`;
}

/**
 * Message while a leader does not know what is taken. It names the leadership, so that every leader writes waiting
 * sessions anew: a late request of an earlier leader then has an old resourceVersion.
 */
export function notKnown(what: string, leadership: number): string {
  return `${what} is not known at the moment (leadership ${leadership}).`;
}
