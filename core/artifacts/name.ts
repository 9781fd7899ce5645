import { MAX_ARTIFACT_NAME_BYTES } from '../resources/limits.ts';

/**
 * Reports whether the text is a path of a file in a folder: relative, with `/` between its parts, no part empty,
 * `.` or `..`. Line feeds and other control characters are allowed, as in a file's name; whoever prints it escapes them.
 */
export function isArtifactName(name: string): boolean {
  if (Buffer.byteLength(name) > MAX_ARTIFACT_NAME_BYTES || name.includes('\0') || !name.isWellFormed()) return false;
  return name.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}
