/**
 * Requirements of a Python environment: `name[extras] specifier; marker` with `--hash` (PEP 508 without URLs). Nothing else
 * that a requirements file can hold: options, paths and URLs would choose another source than the class's index, and uv
 * expands `${NAME}` in such a file.
 */

const NAME = '[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?';
const EXTRAS = `\\[ ?${NAME}( ?, ?${NAME})* ?\\]`;
const SPECIFIER = '(===|==|~=|!=|<=|>=|<|>) ?[A-Za-z0-9.*+!_-]+';
const SPECIFIERS = `${SPECIFIER}( ?, ?${SPECIFIER})*`;
const MARKER = `([A-Za-z0-9_.<>=!~() ]|"[A-Za-z0-9_.+* -]*"|'[A-Za-z0-9_.+* -]*')+`;
const HASH = '--hash=(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})';

/** Pattern of one requirement, on one line and with single spaces; also of the API server (RE2). */
export const REQUIREMENT = new RegExp(`^${NAME}( ?${EXTRAS})?( ?${SPECIFIERS})?( ?; ?${MARKER})?( ${HASH})*$`);

/** Name of a package's file, which uv would take from the disk. */
const ARCHIVE = /^[^ ;[=<>~!]+\.(whl|zip|tgz|tar(\.[a-z0-9]+)?)\b/i;

/** Limits of an environment's requirements; a package with wheels for many platforms has some 70 hashes. */
export const MAX_REQUIREMENTS = 256;
export const MAX_REQUIREMENT_LENGTH = 16_384;

/** The requirements cannot be used. The message names the line, its problem and what to do. */
export class RequirementsError extends Error {
  readonly code = 'RequirementInvalid';
}

/** Returns the requirements of the text of a requirements file. Throws a RequirementsError. */
export function parseRequirements(text: string): string[] {
  const found: string[] = [];
  const lines = text.split(/\r\n|\r|\n/);
  for (let i = 0; i < lines.length; i++) {
    const number = i + 1;
    let line = withoutComment(lines[i] ?? '');
    while (line.endsWith('\\') && i + 1 < lines.length)
      line = `${line.slice(0, -1)} ${withoutComment(lines[++i] ?? '')}`;
    const requirement = line.trim().replace(/\s+/g, ' ');
    if (requirement === '') continue;
    const problem = requirementProblem(requirement);
    if (problem) throw new RequirementsError(`line ${number}: ${problem}`);
    found.push(requirement);
    if (found.length > MAX_REQUIREMENTS)
      throw new RequirementsError(`line ${number}: there are more than ${MAX_REQUIREMENTS} requirements`);
  }
  return found;
}

/** Returns the problem of a text that should be one requirement; undefined if there is none. */
export function requirementProblem(text: string): string | undefined {
  if (text.length > MAX_REQUIREMENT_LENGTH) return `it is longer than ${MAX_REQUIREMENT_LENGTH} characters`;
  if (REQUIREMENT.test(text) && !ARCHIVE.test(text)) return undefined;
  const shown = JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
  const [option] = /^-{1,2}[A-Za-z-]*/.exec(text) ?? [];
  if (option !== undefined) {
    return `the option ${option} is not taken; name packages, the index is a setting of the SessionClass`;
  }
  if (text.includes('$')) return `${shown}: variables are not expanded; write the value`;
  if (ARCHIVE.test(text) || /:\/\/|^[./~]|\/|^file:|\w ?@ ?\S/.test(text)) {
    return `${shown} is a URL or a path; name a package of the index, and carry files along with agent.files`;
  }
  return `${shown} is not of the form name[extra] ==1.2; marker --hash=sha256:…`;
}

/** Name by which indexes know a package: lower case, with "-" between its words. */
export function packageName(requirement: string): string {
  const [name = ''] = new RegExp(`^${NAME}`).exec(requirement) ?? [];
  return name.toLowerCase().replace(/[-_.]+/g, '-');
}

/**
 * Returns the digests that requirements name, by the name of the package: `sha256:…`. Where there are some for a package, only they
 * count.
 */
export function digestsOf(requirements: readonly string[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const requirement of requirements) {
    const digests = [...requirement.matchAll(/ --hash=(\S+)/g)].map(([, digest = '']) => digest);
    if (digests.length === 0) continue;
    const name = packageName(requirement);
    found.set(name, new Set([...(found.get(name) ?? []), ...digests]));
  }
  return found;
}

function withoutComment(line: string): string {
  return line.replace(/(^|\s)#.*$/, '').trimEnd();
}
