/** What a pod's processes have in their environment, to be found by. The values hold no blanks. */
export const MARKER_POD = 'BERTH_POD_UID';
export const MARKER_CONTAINER = 'BERTH_CONTAINER';
export const MARKER_ROOT = 'BERTH_LOCAL_ROOT';
