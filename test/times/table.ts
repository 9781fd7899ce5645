import type { FileTimes, SuiteTimes } from './report.ts';

/** Factor over the last run from which a file has become slower, and the least that it must have lost. */
const SLOWER = 1.5;
const SLOWER_BY_MS = 2_000;
/** Files and tests that are named at the end of a run. */
const NAMED = 5;

type Files = Readonly<Record<string, FileTimes>>;

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

/** Returns the lines at the end of a run: its slowest files and tests, and the files that take more than half as long again as before. */
export function conclusions(now: Files, before: Files): string[] {
  const slowest = Object.entries(now).sort(([, a], [, b]) => b.wallMs - a.wallMs);
  const tests = slowest.flatMap(([path, { slowest }]) => (slowest ? [{ path, ...slowest }] : []));
  return [
    `slowest files: ${slowest
      .slice(0, NAMED)
      .map(([path, { wallMs }]) => `${path} ${seconds(wallMs)}`)
      .join(', ')}`,
    'slowest tests, one a file:',
    ...tests
      .sort((a, b) => b.ms - a.ms)
      .slice(0, NAMED)
      .map(({ path, name, ms }) => `  ${seconds(ms)}  ${path}: ${name}`),
    ...slower(now, before).map(
      ({ path, was, is }) => `slower than in the last run on this machine: ${path} ${seconds(was)} → ${seconds(is)}`,
    ),
  ];
}

function slower(now: Files, before: Files): { path: string; was: number; is: number }[] {
  return Object.entries(now)
    .flatMap(([path, { wallMs: is }]) => {
      const was = before[path]?.wallMs;
      return was !== undefined && is > was * SLOWER && is - was > SLOWER_BY_MS ? [{ path, was, is }] : [];
    })
    .sort((a, b) => b.is - b.was - (a.is - a.was));
}

/** Returns the lines of a suite's table: a line for the suite and one for each file, the longest first. */
export function table(suite: string, { wallMs, workers, files }: SuiteTimes): string[] {
  const rows = Object.entries(files).sort(([, a], [, b]) => b.wallMs - a.wallMs);
  const sum = (of: (file: FileTimes) => number) => rows.reduce((total, [, file]) => total + of(file), 0);
  const whole =
    wallMs === undefined ? 'never ran whole' : `${seconds(wallMs)} on ${workers} worker${workers === 1 ? '' : 's'}`;
  const total = `${sum(({ tests }) => tests)} tests, ${seconds(sum((file) => file.cpuMs))} CPU, ${seconds(sum((file) => file.wallMs))} of files`;
  return [
    `${suite}: ${whole}; ${total}`,
    `  ${'wall'.padStart(8)} ${'CPU'.padStart(8)} ${'tests'.padStart(5)}  file`,
    ...rows.map(([path, { wallMs: wall, cpuMs, tests, waits }]) => {
      const waiting = waits.map(({ what, ms }) => `${what} ${seconds(ms)}`).join(', ');
      const row = `  ${seconds(wall).padStart(8)} ${seconds(cpuMs).padStart(8)} ${String(tests).padStart(5)}  ${path}`;
      return waiting ? `${row}; waits for: ${waiting}` : row;
    }),
  ];
}
