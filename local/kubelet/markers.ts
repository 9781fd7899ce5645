/** Environment variables that mark the processes of a pod. Their values contain no blanks. */
export const MARKER_POD = 'BERTH_POD_UID';
export const MARKER_CONTAINER = 'BERTH_CONTAINER';
export const MARKER_ROOT = 'BERTH_LOCAL_ROOT';
