/** A session that waits for a place. */
export interface Applicant {
  /** `namespace/name`. */
  key: string;
  namespace: string;
  class: string;
  /** Higher comes first, within the namespace. */
  priority: number;
  /** Since when it has waited, milliseconds since the epoch. */
  since: number;
}

/** Whether a session's next turn may begin as far as its concurrency group is concerned. */
export type GroupView =
  | { free: true }
  /** `unknown`: why the leader may not let any turn begin yet. */
  | { free: false; group: string; limit: number; running: string[]; unknown: string | undefined };
