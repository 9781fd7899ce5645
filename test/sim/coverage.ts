import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';

const CONTROLLER = new URL('../../controller/', import.meta.url).href;

/** How many lines of code a file has, and how many of them ran. */
interface Lines {
  file: string;
  lines: number;
  ran: number;
}

/** Runs `work` in this process and says which lines of `controller/` ran; a file that nobody loaded is not among them. */
export async function controllerCoverage(work: () => Promise<unknown>): Promise<Lines[]> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  return result
    .filter(({ url }) => url.startsWith(CONTROLLER))
    .map(({ url, functions }) => {
      // Types are replaced by blanks, so places in what ran are places in the source.
      const code = stripTypeScriptTypes(readFileSync(fileURLToPath(url), 'utf8'));
      // The file itself ran when it was loaded, which was before; outer ranges come before inner ones.
      const counts = new Uint32Array(code.length).fill(1);
      for (const { startOffset, endOffset, count } of functions.slice(1).flatMap(({ ranges }) => ranges))
        counts.fill(count, startOffset, endOffset);
      let [at, lines, ran] = [0, 0, 0];
      for (const line of code.split('\n')) {
        const first = at + line.search(/\S/);
        at += line.length + 1;
        // Neither blank, nor a comment, nor the end of a block.
        if (!/^\s*[^\s/*})\];]/.test(line)) continue;
        lines++;
        if (counts[first]) ran++;
      }
      return { file: url.slice(CONTROLLER.length), lines, ran };
    });
}
