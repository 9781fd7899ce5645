/** What the machine says of its processes. */

export interface ProcessInfo {
  pid: number;
  ppid: number;
  /** The session's id: the pid of the process that began it. */
  sid: number;
  /** When it began, in units that only compare within one boot of the machine. */
  start: number;
}

export interface ProcessTable {
  /** Every process that is not a zombie. */
  list(): ProcessInfo[];
  /** One process, or undefined when there is none of that pid (or only a zombie). */
  find(pid: number): ProcessInfo | undefined;
  /** The environment it was started with; undefined when it may not be read. */
  environment(pid: number): Map<string, string> | undefined;
  /** True while a program of this user is being loaded: its environment cannot be read yet. */
  isLoading(): boolean;
  /** Differs after every boot of the machine, so that pids and starts recorded before it mean nothing. */
  bootId(): string;
}
