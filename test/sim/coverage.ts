import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';

const CONTROLLER = new URL('../../controller/', import.meta.url).href;

/** Number of lines of code in a file, and of those that ran. */
interface Lines {
  file: string;
  lines: number;
  ran: number;
}

/** Runs `work` in this process and returns which lines of `controller/` ran, without files that were never loaded. */
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
      // Blanks replace the types, so offsets in the code that ran are offsets in the source.
      const code = stripTypeScriptTypes(readFileSync(fileURLToPath(url), 'utf8'));
      // The top level ran before the profile began, when the file was loaded. Outer ranges come before inner ones.
      const counts = new Uint32Array(code.length).fill(1);
      for (const { startOffset, endOffset, count } of functions.slice(1).flatMap(({ ranges }) => ranges))
        counts.fill(count, startOffset, endOffset);
      let [at, lines, ran] = [0, 0, 0];
      for (const line of code.split('\n')) {
        const first = at + line.search(/\S/);
        at += line.length + 1;
        // Blank lines, comments and ends of blocks do not count.
        if (!/^\s*[^\s/*})\];]/.test(line)) continue;
        lines++;
        if (counts[first]) ran++;
      }
      return { file: url.slice(CONTROLLER.length), lines, ran };
    });
}
