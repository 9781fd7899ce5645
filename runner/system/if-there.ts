import { errorCode } from './errors.ts';

/** Returns undefined where the file system reports that the path does not exist (any more). */
export function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCode(error))) return undefined;
    throw error;
  }
}
