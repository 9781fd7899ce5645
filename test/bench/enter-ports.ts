import { get } from 'node:http';
import { listening } from '../e2e/support/port-forward.ts';
import { eventually } from '../support/eventually.ts';
import { compared, type Figure } from './figures.ts';
import { alternating } from './took.ts';

/** A program that forwards a port of this machine, and its arguments. */
type Forward = readonly [program: string, ...args: string[]];

export interface Requested {
  /** Path of a file, as the server has it. */
  path: string;
  bytes: number;
  samples: number;
}

/** Asks for a file over a connection of its own. Rejects unless all of it comes. */
function ask(port: number, { path, bytes }: Requested): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get({ port, host: '127.0.0.1', path, agent: false }, (response) => {
      let taken = 0;
      response.on('data', (chunk: Buffer) => {
        taken += chunk.length;
      });
      response.once('error', reject);
      response.once('end', () => {
        if (response.statusCode === 200 && taken === bytes) resolve();
        else reject(new Error(`${path}: ${response.statusCode} and ${taken} of ${bytes} bytes`));
      });
    });
    request.once('error', reject);
  });
}

/** Requests to a server inside a session over the port that `berth` forwards, beside the same over the port that `kubectl` forwards. */
export async function requests(berth: Forward, kubectl: Forward, files: readonly Requested[]): Promise<Figure[]> {
  const [own, other] = [await listening(...split(berth)), await listening(...split(kubectl))];
  try {
    const figures: Figure[] = [];
    for (const file of files) {
      // The server takes a moment to listen.
      await eventually(() => ask(own.port, file).then(() => true), { what: `${file.path} over the forwarded port` });
      const pair = await alternating(
        file.samples,
        () => ask(own.port, file),
        () => ask(other.port, file),
      );
      const what = `a request for ${file.bytes} bytes over a forwarded port, on a connection of its own`;
      figures.push(compared(what, pair.values, { what: 'over that of kubectl port-forward', values: pair.beside }));
    }
    return figures;
  } finally {
    own.end();
    other.end();
  }
}

const split = ([program, ...args]: Forward): [string, string[]] => [program, args];
