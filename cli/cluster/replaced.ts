import { ApiError } from '../../core/kube/errors.ts';

/** Error for a session or turn that was deleted and has been replaced by another of its name. */
export const replaced = (name: string, kind: 'session' | 'turn' = 'session') =>
  new ApiError({
    code: 404,
    reason: 'NotFound',
    message: `${kind} "${name}" was deleted, and another has its name; that one is kept`,
    details: { name },
  });
