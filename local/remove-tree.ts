import { chmodSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** Removes a folder with everything in it, also what stands in directories that their owner has made read-only. */
export function removeTree(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    if (!['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    openUp(folder);
    rmSync(folder, { recursive: true, force: true });
  }
}

function openUp(folder: string): void {
  chmodSync(folder, 0o700);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) openUp(join(folder, entry.name));
  }
}
