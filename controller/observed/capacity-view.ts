/** A session that waits for a slot. */
export interface Applicant {
  /** `namespace/name`. */
  key: string;
  namespace: string;
  class: string;
  /** Higher values come first, within the namespace. */
  priority: number;
  /** Start of the wait, milliseconds since the epoch. */
  since: number;
  /** Names of the pods that it could claim, the first one first. A claimed pod brings its slot along. */
  warm?: readonly string[];
}

/** Admission of a session's next turn by its concurrency group. */
export type GroupView =
  | { free: true }
  /** `unknown`: why the leader may not let any turn begin yet. */
  | { free: false; group: string; limit: number; running: string[]; unknown: string | undefined };
