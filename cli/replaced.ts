import { ApiError } from '../core/kube/errors.ts';

/** Error for a session that was deleted and has been replaced by another of its name. */
export const replaced = (name: string) =>
  new ApiError({
    code: 404,
    reason: 'NotFound',
    message: `session "${name}" was deleted, and another has its name; that one is kept`,
    details: { name },
  });
