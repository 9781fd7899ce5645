import type { Applicant } from '../../controller/observed/capacity-view.ts';

/** A session that waits for a slot; `key` is `namespace/name`. */
export function anApplicant(key: string, change: Partial<Applicant> = {}): Applicant {
  return { key, namespace: key.slice(0, key.indexOf('/')), class: 'default', priority: 0, since: 0, ...change };
}
