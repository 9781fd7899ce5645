/** Configuration of the program `local`: one schema, from flags and environment. */

import { parseArgs } from 'node:util';
import { z } from 'zod';
import { homeFolder } from '../core/embedded.ts';
import { VERSION } from '../core/program/version.ts';

/** Wrong flags or environment; the text lists every problem. */
export class UsageError extends Error {
  readonly code = 'Usage';
}

const port = z.coerce.number().int().min(0).max(65_535);

const schema = z.strictObject({
  command: z.enum(['up', 'down', 'status', 'kubeconfig']),
  /** BERTH_HOME: the folder of everything that the embedded cluster keeps. Default: berth in the user's data folder. */
  home: z.string().min(1),
  /** --port: port of the Kubernetes API, on 127.0.0.1. Default 0: the last one of this folder if free, else any. */
  port: port.default(0),
  /** --api-port: port of the HTTP API, on 127.0.0.1. Default 0: as for --port. */
  'api-port': port.default(0),
  /** --detach: run in the background; return when everything is ready. */
  detach: z.boolean().default(false),
  /** --output, -o: format of what status prints. Default: text. */
  output: z.enum(['json']).optional(),
});

export interface LocalConfig {
  command: 'up' | 'down' | 'status' | 'kubeconfig';
  home: string;
  port: number;
  apiPort: number;
  detach: boolean;
  output?: 'json' | undefined;
}

export const USAGE = `The embedded cluster: the Kubernetes API, the controller and the HTTP API on this machine, pods as processes.

  local up [--detach] [--port N] [--api-port N]   start it; stays in the foreground unless --detach
  local down                                      stop it and everything that runs in it
  local status [-o json]                          addresses, kubeconfig and token file; exit code 1 when nothing runs
  local kubeconfig                                the path of the kubeconfig

Without --port and --api-port the ports of the last up are used again if they are free.

BERTH_HOME is the folder that holds all of it (default: berth in the user's data folder).
Its pods are processes of this machine: they are NOT isolated from it or from one another.

Example: local up --detach
`;

/**
 * Rejects unknown or invalid arguments with a `UsageError`. Returns a string if the arguments ask for a text to print.
 */
export function readConfig(args: string[], env: NodeJS.ProcessEnv): LocalConfig | string {
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({
      args,
      allowPositionals: true,
      options: {
        port: { type: 'string' },
        'api-port': { type: 'string' },
        detach: { type: 'boolean' },
        output: { type: 'string', short: 'o' },
        help: { type: 'boolean' },
        version: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const { help, version, ...values } = parsed.values;
  if (help) return USAGE;
  if (version) return `${VERSION}\n`;
  if (parsed.positionals.length !== 1) throw new UsageError('exactly one of up, down, status, kubeconfig is needed');
  const result = schema.safeParse({ ...values, command: parsed.positionals[0], home: homeFolder(env) });
  if (!result.success) {
    const problems = result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
    throw new UsageError(problems.join('\n'));
  }
  const { command, home, detach, output } = result.data;
  return { command, home, detach, output, port: result.data.port, apiPort: result.data['api-port'] };
}
