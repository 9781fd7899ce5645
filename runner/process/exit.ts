/** End of a process. */
export interface Exit {
  /** Null when a signal ended the process. */
  code: number | null;
  signal: string | null;
}
