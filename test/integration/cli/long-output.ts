/** Output of a command that is too long to be kept: its length and its digest. */
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';

/** Returns length and SHA-256 of what `seq 1 LINES` prints; `lines` is a multiple of 100,000. */
export function ofSeq(lines: number): [bytes: number, sha256: string] {
  const hash = createHash('sha256');
  let bytes = 0;
  for (let i = 1; i <= lines; i += 100_000) {
    const part = `${Array.from({ length: 100_000 }, (_, k) => i + k).join('\n')}\n`;
    hash.update(part);
    bytes += part.length;
  }
  return [bytes, hash.digest('hex')];
}

/** Resolves with exit code, length and SHA-256 of stdout, and all of stderr, when the process has ended and both were read. */
export async function printedBy(
  child: ChildProcess,
): Promise<{ code: number | null; bytes: number; sha256: string; stderr: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    hash.update(chunk);
    bytes += chunk.length;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, bytes, sha256: hash.digest('hex'), stderr };
}
