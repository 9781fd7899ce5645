/** Processes of the machine, as the kubelet needs them. */

export interface ProcessInfo {
  pid: number;
  ppid: number;
  /** Id of the session: the pid of the process that began it. */
  sid: number;
  /** Start time, in units that only compare within one boot of the machine. */
  start: number;
}

export interface ProcessTable {
  /** Returns every process that is not a zombie. */
  list(): ProcessInfo[];
  /** Returns one process; undefined when there is none with that pid (or only a zombie). */
  find(pid: number): ProcessInfo | undefined;
  /** Returns its first environment; undefined when that may not be read. */
  environment(pid: number): Map<string, string> | undefined;
  /** True while a program of this user is being loaded: its environment cannot be read yet. */
  isLoading(): boolean;
  /** Id of the boot of the machine: pids and start times of an earlier boot mean nothing. */
  bootId(): string;
}
