/** How a process ended. */
export interface Exit {
  /** null when a signal ended it. */
  code: number | null;
  signal: string | null;
}
