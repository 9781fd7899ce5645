import type { Cli } from '../cli.ts';

const UPDATE_MS = 200;
const MB = 1e6;

/** Passes data on, and shows on a terminal how much has come. `total`: bytes, where they are known. */
export async function* withProgress<R>(
  data: AsyncGenerator<Buffer, R>,
  { what, total }: { what: string; total?: number },
  cli: Cli,
): AsyncGenerator<Buffer, R> {
  let bytes = 0;
  let shownAt = cli.clock.monotonic();
  try {
    for (;;) {
      const { value, done } = await data.next();
      if (done) return value;
      bytes += value.length;
      const now = cli.clock.monotonic();
      if (cli.status && now - shownAt >= UPDATE_MS) {
        shownAt = now;
        cli.status(progressLine(what, bytes, total));
      }
      yield value;
    }
  } finally {
    cli.status?.('');
    await data.return(undefined as never);
  }
}

function progressLine(what: string, bytes: number, total: number | undefined): string {
  const done = (bytes / MB).toFixed(1);
  if (total === undefined || total === 0) return `${what}: ${done} MB`;
  return `${what}: ${done} of ${(total / MB).toFixed(1)} MB, ${Math.floor((100 * bytes) / total)} %`;
}
