import { ApiError } from '../../core/kube/errors.ts';
import type { SessionMemory } from './context.ts';

/** Of reading the log of an ended container, before it counts as lost. */
const ATTEMPTS = 5;

/**
 * Whether the log that could not be read because of `error` will never be: a pod that the kubelet refused has none, a node
 * that is gone does not answer for it. Anything else is tried a few times.
 */
export function isUnreadable(memory: SessionMemory, error: unknown): boolean {
  memory.logFailures = (memory.logFailures ?? 0) + 1;
  return (error instanceof ApiError && error.code < 500) || memory.logFailures >= ATTEMPTS;
}
