/** Scenarios: what both clients do, as data, and what has to come of it. */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import * as z from 'zod';
import { FAULTS, type FaultName } from './proxy/faults.ts';

const FOLDER = join(import.meta.dirname, 'scenarios');
const faultName = z.enum(Object.keys(FAULTS) as [FaultName, ...FaultName[]]);

const failure = z.strictObject({
  class: z.string(),
  code: z.string().optional(),
  /** Part of its text. */
  says: z.string().optional(),
});
const expectation = z.strictObject({
  /** Value of the step; of an object the members that are named. */
  value: z.unknown().optional(),
  error: failure.optional(),
  /** Events of the agent and lines of its log that have to be among what is followed, each once and in order. */
  agent: z.number().optional(),
  lines: z.number().optional(),
  /** Number of the sessions `listed-N` that a list has to have, each once and in the order of their names. */
  listed: z.number().optional(),
});
/** How many of the requests to a path there are in a run without a fault. */
const requests = z.strictObject({
  /** End of the path, without the query. */
  path: z.string(),
  /** Only those with this answer. */
  status: z.number().optional(),
  least: z.number().default(0),
  most: z.number().optional(),
});
const step = z.strictObject({
  /** What is done: see the README. */
  do: z.string(),
  /** Name of the saved object that it is done to. */
  on: z.string().optional(),
  with: z.record(z.string(), z.unknown()).optional(),
  /** Name under which what it returns is kept for later steps. */
  save: z.string().optional(),
  expect: expectation.optional(),
});
const schema = z.strictObject({
  title: z.string(),
  /**
   * Marks of the inputs that have to run, each once, in this order; one with a `?` behind it may have come to its end before its program began. Or how
   * many begin with a mark, in any order.
   */
  runs: z.union([z.array(z.string()), z.strictObject({ mark: z.string(), count: z.number() })]).default([]),
  /** Sessions with the label `run=$run` that are there in the end. */
  sessions: z.number().default(0),
  /** Files in $folder in the end, beside the token's, with what they have to be equal to. */
  files: z.record(z.string(), z.enum(['$content'])).default({}),
  /** Time that the server is asked to wait for the end of a turn, milliseconds. */
  waitMs: z.number().default(5_000),
  /** Environment of the HTTP API; with any, it is a program of its own. */
  server: z.record(z.string(), z.string()).default({}),
  /** Pauses of the client between its tries: short ones, or its own. */
  pauses: z.enum(['short', 'own']).default('short'),
  /** Time from the first stream on in which each stream ends at once, milliseconds. */
  endStreamsMs: z.number().default(0),
  /** Time for which the first stream is held between server and client after its beginning, milliseconds. */
  holdStreamMs: z.number().default(0),
  requests: z.array(requests).default([]),
  /** True for one that takes long, and is left out of the part that `make test` has. */
  isLong: z.boolean().default(false),
  /** Where the client's token is: in the order, or in the file $tokenFile. */
  token: z.enum(['given', 'file']).default('given'),
  /** Faults that are left out, each with the reason. */
  without: z.partialRecord(faultName, z.string()).default({}),
  /** Number of runs with a fault, which are spread over all that are possible; default: all of these. */
  faulty: z.number().optional(),
  steps: z.array(step).min(1),
});

export type Scenario = z.infer<typeof schema> & { name: string };
export type Step = Scenario['steps'][number];

/** Returns all scenarios in the order of their names. Throws where one is not as the schema says. */
export function scenarios(): Scenario[] {
  return globSync('*.json', { cwd: FOLDER })
    .sort()
    .map((file) => {
      const { success, data, error } = schema.safeParse(JSON.parse(readFileSync(join(FOLDER, file), 'utf8')));
      if (!success) throw new Error(`${file}: ${z.prettifyError(error)}`);
      return { ...data, name: basename(file, '.json') };
    });
}

/** Replaces `$name` in all texts of a value. Throws for a name that has no value. */
export function filled<T>(value: T, names: Readonly<Record<string, string>>): T {
  if (typeof value === 'string') {
    return value.replace(/\$([a-zA-Z]+)/g, (_, name: string) => {
      const found = names[name];
      if (found === undefined) throw new Error(`$${name} has no value`);
      return found;
    }) as T;
  }
  if (Array.isArray(value)) return value.map((item) => filled(item, names)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, filled(member, names)])) as T;
}
