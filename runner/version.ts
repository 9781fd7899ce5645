/** Of the release that this runner is part of. */
export const RUNNER_VERSION = '0.1.0';
