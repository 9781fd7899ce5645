/** Prints the codes of the HTTP API as Python's classes of errors. */
import { PROBLEMS } from '../api/problems/problems.ts';

export function pythonProblems(notice: string): string {
  const codes = Object.entries(PROBLEMS);
  return [
    `# ${notice}`,
    '"""Refusals of the HTTP API: a class for each code. A code of a later release is a plain ProblemError."""',
    '',
    'from ._errors import ProblemError',
    '',
    ...codes.map(([code, [status, title]]) => `\nclass ${code}(ProblemError):\n    """${status}: ${title}"""\n`),
    '',
    'BY_CODE: dict[str, type[ProblemError]] = {',
    ...codes.map(([code]) => `    "${code}": ${code},`),
    '}',
    '',
  ].join('\n');
}
