/** A program could not be started. `code` is the name of an errno, `step` the failed step. */
export class StartError extends Error {
  readonly code: string;
  readonly step: string;
  constructor(step: string, code: string) {
    super(`${step} failed: ${code}`);
    this.name = 'StartError';
    this.code = code;
    this.step = step;
  }
}

/** Returns the name of a thrown error for a message: that of its errno if it has one. */
export function errorCode(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : error instanceof Error ? error.message : String(error);
}
